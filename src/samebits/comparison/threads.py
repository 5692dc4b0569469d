"""Walks two records of a script in which several threads train: all of it as one step, its lanes apart."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from samebits.comparison.lanes import Lanes, Parting, differing_tensors, pair_lanes, parting
from samebits.comparison.states import Place, StateDifference, TensorPair
from samebits.comparison.steps import STEP_KINDS, Step
from samebits.comparison.survey import StepDifference, Survey, note_outputs, survey
from samebits.comparison.tables import TableDifference, compare_tables
from samebits.recording.events import END
from samebits.recording.same_values import NUMBER

if TYPE_CHECKING:
    from collections.abc import Collection

    from samebits.comparison.lanes import Lane
    from samebits.comparison.sources import Record


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
        if event.kind == "step" and event.op != END:
            lanes.add(event)
        elif event.kind == "grad":
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
