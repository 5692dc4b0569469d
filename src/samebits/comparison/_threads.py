"""The steps of runs in which several threads train: by optimizer, each with the state that belongs to it.

Which thread makes its step first is chance. So the steps of each optimizer are a lane of their own, and a
lane of one run is compared with that of the other which holds the same: optimizers and models are numbered in
order of creation, which is chance too where threads make them.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits.comparison._survey import StepDifference, Survey, note_outputs, survey
from samebits.comparison.states import Place, StateDifference, TensorPair
from samebits.comparison.steps import STEP_KINDS, Step
from samebits.comparison.tables import TableDifference, compare_tables
from samebits.recording.state_equality import NUMBER, Name
from samebits.records.events import END, Ownership
from samebits.records.kinds import EventKind, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from samebits.comparison.lookup import Record
    from samebits.records.events import Event

_WIDTH = 16
_MODEL_ROLES = (Role.PARAM, Role.BUFFER)
_NO_GRADIENTS = (0, b"")


@dataclass
class Lane:
    """The steps of one optimizer, or of one thread that has none, in order.

    Args:
        thread: which made the first of them.
        op: of the first of them.
        seqs: numbers of the `step` events.
        states: digest of what each holds, 16 bytes each.
        gradients: of each step, how many gradients were seen before it, and a digest of them.
    """

    thread: str
    op: str
    seqs: array[int] = field(default_factory=lambda: array("q"))
    states: bytearray = field(default_factory=bytearray)
    gradients: list[tuple[int, bytes]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.seqs)

    def state(self, step: int) -> bytes:
        """The digest of one step."""
        return bytes(self.states[_WIDTH * step : _WIDTH * (step + 1)])


class Parting(NamedTuple):
    """Where two lanes part: numbers of the `step` events; None where a run has no such step."""

    a: int | None
    b: int | None


class Lanes:
    """The lanes of one run.

    Args:
        excused: names of state tensors that are left out.
    """

    def __init__(self, excused: Collection[str] = ()) -> None:
        self.listed: dict[Any, Lane] = {}
        self._excused = excused
        self._gradients: dict[str, dict[str, bytes]] = defaultdict(dict)
        self._owned: dict[tuple[int, str], tuple[object, list[int], bytes]] = {}

    def add_gradients(self, event: Event) -> None:
        """Take in the gradients of a backward pass: the event has all that there are."""
        names = [info.name for info in event.tensors]
        self._gradients[event.thread] = dict(zip(names, event.digests, strict=True))

    def add(self, event: Event) -> None:
        """Take in a step."""
        number = Ownership.from_text(event.arguments).number
        key = number if event.op.endswith(".step") else event.thread
        lane = self.listed.get(key)
        if lane is None:
            lane = self.listed[key] = Lane(event.thread, event.op)
        positions, layout = self._positions(event)
        lane.seqs.append(event.seq)
        lane.states += _short_hash(layout, *[event.digests[i] for i in positions])
        lane.gradients.append(self._taken_gradients(event, positions))

    def _positions(self, event: Event) -> tuple[list[int], bytes]:
        key = (id(event.tensors), event.arguments)  # a record gives the same object for the same layout
        known = self._owned.get(key)
        if known is None or known[0] is not event.tensors:
            positions = [i for i in owned(event) if event.tensors[i].name not in self._excused]
            shown = [
                (event.tensors[i].role, event.tensors[i].dtype, event.tensors[i].shape) for i in positions
            ]
            known = self._owned[key] = (event.tensors, positions, repr(shown).encode())
        return known[1], known[2]

    def _taken_gradients(self, event: Event, positions: list[int]) -> tuple[int, bytes]:
        seen = self._gradients[event.thread]
        held = {info.name for info in event.tensors if info.role == Role.PARAM}
        if not seen or not seen.keys() <= held:
            # Another thread has let go of a model since: what is left may have its names now.
            return _NO_GRADIENTS
        names = [event.tensors[i].name for i in positions if event.tensors[i].role == Role.PARAM]
        digests = [seen.pop(name, b"") for name in names]
        return sum(map(bool, digests)), _short_hash(*digests)


def owned(event: Event) -> list[int]:
    """Positions of the tensors of a `step` event that belong to its optimizer."""
    model = Ownership.from_text(event.arguments).positions
    kept = None if model is None else frozenset(model)
    return [
        i
        for i, info in enumerate(event.tensors)
        if info.role not in _MODEL_ROLES or kept is None or i in kept
    ]


def pair_lanes(a: Lanes, b: Lanes) -> list[tuple[Lane | None, Lane | None]]:
    """Which lane of one run is which of the other: by contents, then by how they begin, then by thread."""
    ours, theirs = list(a.listed.values()), list(b.listed.values())
    found: list[tuple[Lane | None, Lane | None]] = []
    keys: tuple[Callable[[Lane], object], ...] = (
        lambda lane: (lane.op, bytes(lane.states), tuple(lane.gradients)),
        lambda lane: (lane.op, bytes(lane.states)),
        lambda lane: (lane.op, lane.state(0)),
        lambda lane: (lane.op, lane.thread),
        lambda lane: lane.op,
    )
    for key in keys:
        waiting = defaultdict(list)
        for lane in theirs:
            waiting[key(lane)].append(lane)
        pairs = [(lane, waiting[key(lane)].pop(0)) for lane in ours if waiting[key(lane)]]
        found += pairs
        taken = {id(lane) for pair in pairs for lane in pair}
        ours, theirs = ([lane for lane in lanes if id(lane) not in taken] for lanes in (ours, theirs))
    return found + [(lane, None) for lane in ours] + [(None, lane) for lane in theirs]


def parting(a: Lane | None, b: Lane | None, *, whole: bool) -> Parting | None:
    """The first step in which two lanes differ.

    Args:
        a: of the first run.
        b: of the second.
        whole: whether both runs came to their end, so that a step that only one has is a difference.
    """
    shortest = min(len(lane) if lane else 0 for lane in (a, b))
    if a is not None and b is not None:
        for step in range(shortest):
            if a.state(step) != b.state(step) or _other_gradients(a.gradients[step], b.gradients[step]):
                return Parting(a.seqs[step], b.seqs[step])
    rest = [lane.seqs[shortest] if lane and len(lane) > shortest else None for lane in (a, b)]
    return Parting(*rest) if whole and rest != [None, None] else None


def differing_tensors(a: Record, b: Record, found: Parting, excused: Collection[str]) -> list[TensorPair]:
    """The tensors that differ where two lanes part, in the order of the record."""
    sides = [[] if seq is None else _shown(r, seq, excused) for r, seq in ((a, found.a), (b, found.b))]
    pairs = [
        TensorPair(*_name(ours, theirs), ours, theirs)
        for ours, theirs in zip_longest(*sides)
        if ours is None or theirs is None or _contents(ours) != _contents(theirs)
    ]
    if found.a is None or found.b is None:
        return pairs
    return _gradient_pairs(a.event(found.a), b.event(found.b), (a, b)) + pairs


def _shown(record: Record, seq: int, excused: Collection[str]) -> list[Place]:
    event = record.event(seq)
    return [Place(event, i) for i in owned(event) if event.tensors[i].name not in excused]


def _gradient_pairs(a: Event, b: Event, records: tuple[Record, Record]) -> list[TensorPair]:
    seen = [_gradients_before(record, event) for record, event in zip(records, (a, b), strict=True)]
    names = [[e.tensors[i].name for i in owned(e) if e.tensors[i].role == Role.PARAM] for e in (a, b)]
    return [
        TensorPair(Role.GRAD, ours, seen[0][ours], seen[1][theirs])
        for ours, theirs in zip(*names, strict=False)
        if ours in seen[0] and theirs in seen[1] and seen[0][ours].digest != seen[1][theirs].digest
    ]


def _gradients_before(record: Record, step: Event) -> dict[str, Place]:
    """The last gradient of each name that the thread of a step recorded before it."""
    found: dict[str, Place] = {}
    for event in _same_thread(record, step):
        found.update({info.name: Place(event, i) for i, info in enumerate(event.tensors)})
    return found


def _same_thread(record: Record, step: Event) -> Iterator[Event]:
    for event in record.events((EventKind.GRAD,), last_step=step.step):
        if event.thread == step.thread and event.op != "grad" and event.seq < step.seq:
            yield event


def _name(ours: Place | None, theirs: Place | None) -> Name:
    place = ours or theirs
    assert place is not None  # noqa: S101 - for the type checker
    info = place.event.tensors[place.position]
    return info.role, info.name


def _contents(place: Place) -> tuple[object, ...]:
    info = place.event.tensors[place.position]
    return info.role, info.dtype, info.shape, place.digest


def _other_gradients(a: tuple[int, bytes], b: tuple[int, bytes]) -> bool:
    # Their names can change between a backward pass and the step, when another thread makes a model.
    return a[0] == b[0] and a[1] != b[1]


def _short_hash(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"".join(parts), digest_size=_WIDTH).digest()


def survey_runs(a: Record, b: Record, excused: Collection[str] = (), *, to_first: bool = False) -> Survey:
    """Compare two records step by step, or lane by lane where several threads made steps.

    Args:
        a: the first record.
        b: the second.
        excused: names of state tensors that are left out.
        to_first: stop behind the first step that makes them different.
    """
    result = survey(a, b, excused, to_first=to_first)
    return survey_threads(a, b, excused) if result.several_threads else result


def survey_threads(a: Record, b: Record, excused: Collection[str] = ()) -> Survey:
    """Compare two records lane by lane.

    Args:
        a: the first record.
        b: the second.
        excused: names of state tensors that are left out.
    """
    (first, lanes_a), (second, lanes_b) = _read(a, excused), _read(b, excused)
    whole = a.info.status == b.info.status == "finished"
    result = Survey(several_threads=True, has_state=True, first_span=(first.last, second.last))
    result.generators.add(first, second)
    pairs = pair_lanes(lanes_a, lanes_b)
    _count(pairs, result)
    outputs, evidence = (
        compare_tables(first.outputs, second.outputs),
        compare_tables(first.evidence, second.evidence),
    )
    result.extra = dict(outputs.extra)
    if not whole:  # which of the values came before the end of a run that was cut short is chance
        outputs, evidence = TableDifference(), TableDifference()
        first.ends, second.ends = [], []
    found = _first_parting(pairs, whole=whole and result.totals[0] == result.totals[1])
    state = StateDifference([] if found is None else differing_tensors(a, b, found, excused), compared=True)
    if not state.pairs:
        state.pairs = _different_ends(first, second, excused)
    step = _step_of(a, b, found, outputs, first)
    difference = StepDifference(first, second, state, outputs, evidence, step)
    note_outputs(difference, result)
    if difference.counts:
        result.first, result.differing = difference, 1
    result.final_digest = _final_digests((lanes_a, first), (lanes_b, second), excused)
    return result


def _read(record: Record, excused: Collection[str]) -> tuple[Step, Lanes]:
    step, lanes = Step(0, 0), Lanes(excused)
    for event in record.events(STEP_KINDS):
        step.last = event.step
        if event.kind == EventKind.STEP and event.op != END:
            lanes.add(event)
        elif event.kind == EventKind.GRAD:
            if event.op != "grad":
                lanes.add_gradients(event)
        else:
            step.add(event)
    return step, lanes


def _count(pairs: list[tuple[Lane | None, Lane | None]], result: Survey) -> None:
    lengths = [[len(lane) if lane else 0 for lane in pair] for pair in pairs]
    result.boundaries = sum(map(min, lengths))
    result.totals = (sum(ours for ours, _ in lengths), sum(theirs for _, theirs in lengths))


def _first_parting(pairs: list[tuple[Lane | None, Lane | None]], *, whole: bool) -> Parting | None:
    """The first in the order of the first run; a step that both have comes before one that only one has."""
    found = [part for part in (parting(ours, theirs, whole=whole) for ours, theirs in pairs) if part]
    return min(found, key=lambda p: (None in p, p.a or 0, p.b or 0), default=None)


def _step_of(a: Record, b: Record, found: Parting | None, outputs: TableDifference, whole: Step) -> int:
    """The number, in the first run, of the step that makes the runs different."""
    if found is not None:
        return a.event(found.a).step if found.a is not None else b.event(found.b or 0).step
    return min((a.event(seq).step for seq, _ in outputs.differing), default=whole.last)


def _different_ends(a: Step, b: Step, excused: Collection[str]) -> list[TensorPair]:
    """What differs in the states that both runs leave, whatever number the creation of a model got."""
    if not (a.ends and b.ends):
        return []
    ours, theirs = (_by_contents(step, excused) for step in (a, b))
    shared = ours.keys() & theirs.keys()
    pairs = []
    for key in [key for key in ours if key in shared]:
        counts = Counter(p.digest for p in ours[key]) & Counter(p.digest for p in theirs[key])
        rest = [_without(places, Counter(counts)) for places in (ours[key], theirs[key])]
        pairs += [
            TensorPair(x.event.tensors[x.position].role, x.event.tensors[x.position].name, x, y)
            for x, y in zip(*rest, strict=False)  # what one run has freed already is no difference
        ]
    return pairs


def _by_contents(step: Step, excused: Collection[str]) -> dict[Any, list[Place]]:
    found: dict[Any, list[Place]] = {}
    event = step.ends[-1]
    for i, info in enumerate(event.tensors):
        if info.name not in excused:
            key = (info.role, NUMBER.sub("", info.name), info.dtype, info.shape)
            found.setdefault(key, []).append(Place(event, i))
    return found


def _without(places: list[Place], counts: Counter[bytes]) -> list[Place]:
    kept = []
    for place in places:
        if counts[place.digest] > 0:
            counts[place.digest] -= 1
        else:
            kept.append(place)
    return kept


def _final_digests(a: tuple[Lanes, Step], b: tuple[Lanes, Step], excused: Collection[str]) -> tuple[str, str]:
    keys = None
    if a[1].ends and b[1].ends:
        keys = _by_contents(a[1], excused).keys() & _by_contents(b[1], excused).keys()
    found = []
    for lanes, step in (a, b):
        parts = sorted(lane.state(len(lane) - 1) for lane in lanes.listed.values())
        if keys:
            ends = _by_contents(step, excused)
            parts += sorted(repr(k).encode() + p.digest for k in keys for p in ends[k])
        found.append(hashlib.blake2b(b"".join(parts), digest_size=16).hexdigest())
    return found[0], found[1]
