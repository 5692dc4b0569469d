"""The steps of runs in which several threads train: by optimizer, each with the state that belongs to it.

It is chance which thread makes its step first. So the steps of each optimizer form a trajectory, and each
trajectory of one run is compared with the one of the other run that holds the same. Their numbers do not tell
which one that is: optimizers and models are numbered in order of creation, which is chance too where threads
make them.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits.comparison._survey import StepDifference, Survey, note_outputs, survey
from samebits.comparison.states import EventTensor, StateDifference, TensorPair
from samebits.comparison.steps import STEP_KINDS, Step, TableDifference, compare_tables
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
class Trajectory:
    """The steps of one optimizer, or of one thread that has none, in order.

    Args:
        thread: the thread that made the first step.
        op: the op of the first step.
        seqs: numbers of the `step` events.
        states: a digest of the state at each step, 16 bytes each.
        gradients: for each step, how many gradients were seen before it, and a digest of them.
    """

    thread: str
    op: str
    seqs: array[int] = field(default_factory=lambda: array("q"))
    states: bytearray = field(default_factory=bytearray)
    gradients: list[tuple[int, bytes]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.seqs)

    def state(self, step: int) -> bytes:
        """Return the digest of the state at one step."""
        return bytes(self.states[_WIDTH * step : _WIDTH * (step + 1)])


TrajectoryPair = tuple["Trajectory | None", "Trajectory | None"]


class Divergence(NamedTuple):
    """The `step` events at which two trajectories diverge; None where a run has no such step."""

    a: int | None
    b: int | None


class Trajectories:
    """The trajectories of one run.

    Args:
        excluded: names of state tensors that are left out.
    """

    def __init__(self, excluded: Collection[str] = ()) -> None:
        self.listed: dict[Any, Trajectory] = {}
        self._excluded = excluded
        self._gradients: dict[str, dict[str, bytes]] = defaultdict(dict)
        self._owned: dict[tuple[int, str], tuple[object, list[int], bytes]] = {}

    def add_gradients(self, event: Event) -> None:
        """Take in the gradients of a backward pass: the event has all of them."""
        names = [info.name for info in event.tensors]
        self._gradients[event.thread] = dict(zip(names, event.digests, strict=True))

    def add(self, event: Event) -> None:
        """Take in a step."""
        number = Ownership.from_text(event.arguments).number
        key = number if event.op.endswith(".step") else event.thread
        trajectory = self.listed.get(key)
        if trajectory is None:
            trajectory = self.listed[key] = Trajectory(event.thread, event.op)
        positions, layout = self._positions(event)
        trajectory.seqs.append(event.seq)
        trajectory.states += _short_hash(layout, *[event.digests[i] for i in positions])
        trajectory.gradients.append(self._taken_gradients(event, positions))

    def _positions(self, event: Event) -> tuple[list[int], bytes]:
        key = (id(event.tensors), event.arguments)  # a record gives the same object for the same layout
        known = self._owned.get(key)
        if known is None or known[0] is not event.tensors:
            positions = [i for i in owned(event) if event.tensors[i].name not in self._excluded]
            # Plain texts: the `repr` of a role names its class, and would change `final_digest`.
            shown = [
                (str(event.tensors[i].role), event.tensors[i].dtype, event.tensors[i].shape)
                for i in positions
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
    """Return the positions of the tensors of a `step` event that belong to its optimizer."""
    listed = Ownership.from_text(event.arguments).positions
    of_model = None if listed is None else frozenset(listed)
    return [
        i
        for i, info in enumerate(event.tensors)
        if info.role not in _MODEL_ROLES or of_model is None or i in of_model
    ]


def pair_trajectories(a: Trajectories, b: Trajectories) -> list[TrajectoryPair]:
    """Match the trajectories of two runs: by contents, then by how they begin, then by thread."""
    ours, theirs = list(a.listed.values()), list(b.listed.values())
    pairs: list[TrajectoryPair] = []
    keys: tuple[Callable[[Trajectory], object], ...] = (
        lambda each: (each.op, bytes(each.states), tuple(each.gradients)),
        lambda each: (each.op, bytes(each.states)),
        lambda each: (each.op, each.state(0)),
        lambda each: (each.op, each.thread),
        lambda each: each.op,
    )
    for key in keys:
        waiting = defaultdict(list)
        for trajectory in theirs:
            waiting[key(trajectory)].append(trajectory)
        matched = [(each, waiting[key(each)].pop(0)) for each in ours if waiting[key(each)]]
        pairs += matched
        taken = {id(each) for pair in matched for each in pair}
        ours, theirs = ([each for each in rest if id(each) not in taken] for rest in (ours, theirs))
    return pairs + [(each, None) for each in ours] + [(None, each) for each in theirs]


def divergence_of(a: Trajectory | None, b: Trajectory | None, *, whole: bool) -> Divergence | None:
    """Find the first step in which two trajectories differ.

    Args:
        a: the trajectory of the first run.
        b: the trajectory of the second run.
        whole: whether both runs came to their end, so that a step that only one has is a difference.
    """
    shortest = min(len(each) if each else 0 for each in (a, b))
    if a is not None and b is not None:
        for step in range(shortest):
            if a.state(step) != b.state(step) or _gradients_differ(a.gradients[step], b.gradients[step]):
                return Divergence(a.seqs[step], b.seqs[step])
    rest = [each.seqs[shortest] if each and len(each) > shortest else None for each in (a, b)]
    return Divergence(*rest) if whole and rest != [None, None] else None


def differing_tensors(
    a: Record, b: Record, divergence: Divergence, excluded: Collection[str]
) -> list[TensorPair]:
    """List the tensors that differ where two trajectories diverge, in the order of the record."""
    sides = [
        [] if seq is None else _shown(r, seq, excluded) for r, seq in ((a, divergence.a), (b, divergence.b))
    ]
    pairs = [
        TensorPair(*_name(ours, theirs), ours, theirs)
        for ours, theirs in zip_longest(*sides)
        if ours is None or theirs is None or _contents(ours) != _contents(theirs)
    ]
    if divergence.a is None or divergence.b is None:
        return pairs
    return _gradient_pairs(a.event(divergence.a), b.event(divergence.b), (a, b)) + pairs


def _shown(record: Record, seq: int, excluded: Collection[str]) -> list[EventTensor]:
    event = record.event(seq)
    return [EventTensor(event, i) for i in owned(event) if event.tensors[i].name not in excluded]


def _gradient_pairs(a: Event, b: Event, records: tuple[Record, Record]) -> list[TensorPair]:
    seen = [_gradients_before(record, event) for record, event in zip(records, (a, b), strict=True)]
    names = [[e.tensors[i].name for i in owned(e) if e.tensors[i].role == Role.PARAM] for e in (a, b)]
    return [
        TensorPair(Role.GRAD, ours, seen[0][ours], seen[1][theirs])
        for ours, theirs in zip(*names, strict=False)
        if ours in seen[0] and theirs in seen[1] and seen[0][ours].digest != seen[1][theirs].digest
    ]


def _gradients_before(record: Record, step: Event) -> dict[str, EventTensor]:
    """Return the last gradient of each name that the thread of a step recorded before it."""
    last: dict[str, EventTensor] = {}
    for event in _same_thread(record, step):
        last.update({info.name: EventTensor(event, i) for i, info in enumerate(event.tensors)})
    return last


def _same_thread(record: Record, step: Event) -> Iterator[Event]:
    for event in record.events((EventKind.GRAD,), last_step=step.step):
        if event.thread == step.thread and event.op != "grad" and event.seq < step.seq:
            yield event


def _name(ours: EventTensor | None, theirs: EventTensor | None) -> Name:
    tensor = ours or theirs
    assert tensor is not None  # noqa: S101 - for the type checker
    return tensor.info.role, tensor.info.name


def _contents(tensor: EventTensor) -> tuple[object, ...]:
    info = tensor.info
    return info.role, info.dtype, info.shape, tensor.digest


def _gradients_differ(a: tuple[int, bytes], b: tuple[int, bytes]) -> bool:
    # Names of gradients can change between a backward pass and the step, when another thread makes a model.
    return a[0] == b[0] and a[1] != b[1]


def _short_hash(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"".join(parts), digest_size=_WIDTH).digest()


def survey_runs(a: Record, b: Record, excluded: Collection[str] = (), *, to_first: bool = False) -> Survey:
    """Compare two records by step, or by trajectory where several threads made steps.

    Args:
        a: the first record.
        b: the second.
        excluded: names of state tensors that are left out.
        to_first: stop after the first step that makes them different.
    """
    result = survey(a, b, excluded, to_first=to_first)
    return survey_threads(a, b, excluded) if result.several_threads else result


def survey_threads(a: Record, b: Record, excluded: Collection[str] = ()) -> Survey:
    """Compare two records by trajectory.

    Args:
        a: the first record.
        b: the second.
        excluded: names of state tensors that are left out.
    """
    (first, ours), (second, theirs) = _read(a, excluded), _read(b, excluded)
    whole = a.info.status == b.info.status == "finished"
    result = Survey(several_threads=True, has_state=True, first_span=(first.last, second.last))
    result.generators.add(first, second)
    pairs = pair_trajectories(ours, theirs)
    _count(pairs, result)
    outputs = compare_tables(first.outputs, second.outputs)
    evidence = compare_tables(first.evidence, second.evidence)
    result.extra = dict(outputs.extra)
    if not whole:  # which of the values came before the end of a run that was cut short is chance
        outputs, evidence = TableDifference(), TableDifference()
        first.ends, second.ends = [], []
    divergence = _earliest_divergence(pairs, whole=whole and result.totals[0] == result.totals[1])
    state = StateDifference(
        [] if divergence is None else differing_tensors(a, b, divergence, excluded), compared=True
    )
    if not state.pairs:
        state.pairs = _different_ends(first, second, excluded)
    step = _step_of(a, b, divergence, outputs, first)
    difference = StepDifference(first, second, state, outputs, evidence, step)
    note_outputs(difference, result)
    if difference.counts:
        result.first = difference
    result.final_digest = _final_digests((ours, first), (theirs, second), excluded)
    return result


def _read(record: Record, excluded: Collection[str]) -> tuple[Step, Trajectories]:
    step, trajectories = Step(0, 0), Trajectories(excluded)
    for event in record.events(STEP_KINDS):
        step.last = event.step
        if event.kind == EventKind.STEP and event.op != END:
            trajectories.add(event)
        elif event.kind == EventKind.GRAD:
            if event.op != "grad":
                trajectories.add_gradients(event)
        else:
            step.add(event)
    return step, trajectories


def _count(pairs: list[TrajectoryPair], result: Survey) -> None:
    lengths = [[len(each) if each else 0 for each in pair] for pair in pairs]
    result.boundaries = sum(map(min, lengths))
    result.totals = (sum(ours for ours, _ in lengths), sum(theirs for _, theirs in lengths))


def _earliest_divergence(pairs: list[TrajectoryPair], *, whole: bool) -> Divergence | None:
    """Find the first divergence in the order of the first run.

    A step that both runs have comes before one that only one has.
    """
    divergences = filter(None, (divergence_of(ours, theirs, whole=whole) for ours, theirs in pairs))
    return min(divergences, key=lambda each: (None in each, each.a or 0, each.b or 0), default=None)


def _step_of(
    a: Record, b: Record, divergence: Divergence | None, outputs: TableDifference, whole: Step
) -> int:
    """Return the number, in the first run, of the step that makes the runs different."""
    if divergence is not None:
        return a.event(divergence.a).step if divergence.a is not None else b.event(divergence.b or 0).step
    return min((a.event(seq).step for seq, _ in outputs.differing), default=whole.last)


def _different_ends(a: Step, b: Step, excluded: Collection[str]) -> list[TensorPair]:
    """List what differs in the final states of both runs, whatever numbers their models got."""
    if not (a.ends and b.ends):
        return []
    ours, theirs = (_by_contents(step, excluded) for step in (a, b))
    pairs = []
    for key in [key for key in ours if key in theirs]:
        counts = Counter(p.digest for p in ours[key]) & Counter(p.digest for p in theirs[key])
        rest = [_without(tensors, Counter(counts)) for tensors in (ours[key], theirs[key])]
        pairs += [
            TensorPair(*_name(x, y), x, y)
            for x, y in zip(*rest, strict=False)  # what one run has freed already is no difference
        ]
    return pairs


def _by_contents(step: Step, excluded: Collection[str]) -> dict[Any, list[EventTensor]]:
    tensors: dict[Any, list[EventTensor]] = {}
    event = step.ends[-1]
    for i, info in enumerate(event.tensors):
        if info.name not in excluded:
            key = (str(info.role), NUMBER.sub("", info.name), info.dtype, info.shape)
            tensors.setdefault(key, []).append(EventTensor(event, i))
    return tensors


def _without(tensors: list[EventTensor], counts: Counter[bytes]) -> list[EventTensor]:
    rest = []
    for tensor in tensors:
        if counts[tensor.digest] > 0:
            counts[tensor.digest] -= 1
        else:
            rest.append(tensor)
    return rest


def _final_digests(
    a: tuple[Trajectories, Step], b: tuple[Trajectories, Step], excluded: Collection[str]
) -> tuple[str, str]:
    ends = [_by_contents(step, excluded) if step.ends else {} for _, step in (a, b)]
    shared = ends[0].keys() & ends[1].keys()
    digests = []
    for (trajectories, _), tensors in zip((a, b), ends, strict=True):
        parts = sorted(each.state(len(each) - 1) for each in trajectories.listed.values())
        parts += sorted(repr(key).encode() + each.digest for key in shared for each in tensors[key])
        digests.append(hashlib.blake2b(b"".join(parts), digest_size=16).hexdigest())
    return digests[0], digests[1]
