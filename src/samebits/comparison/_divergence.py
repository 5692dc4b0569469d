"""Finds the point from which two runs do different things."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.causes import OriginKind
from samebits.comparison import _findings
from samebits.comparison._data_flow import Point
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.records.events import END
from samebits.records.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.comparison._alignment import Alignment
    from samebits.comparison._survey import Survey
    from samebits.comparison.lookup import EventCache, Lookup, Record
    from samebits.comparison.results import Finding
    from samebits.records.events import Event


def block_start(lookup: Lookup, a: Event | None, b: Event | None) -> Finding:
    """Make a finding of the first event in a stretch, around an event, that only one run has.

    Args:
        lookup: the records.
        a: an event that only the first run has, if any.
        b: an event that only the second run has, if any.
    """
    event = a or b
    if event is None:
        raise ValueError("a divergence needs an event that one run does not have")
    alignment = lookup.alignment(event.step if a else lookup.step_in_a(event.step))
    if alignment is None:
        return _findings.lost(a, b, EvidenceCode.TOO_LONG_TO_ALIGN)
    if a is None:
        alignment = alignment.mirrored()
    if event.seq not in alignment.a.index:
        return _findings.lost(a, b, EvidenceCode.NOT_IN_STEP)
    rows = _block(alignment, event)
    start = (lookup.a if a else lookup.b).get(alignment.a.seqs[rows[0]])
    twin = _meanwhile(alignment, rows[0], lookup.b if a else lookup.a)
    sides = (start, twin) if a else (twin, start)
    return _findings.control_flow(*sides, of_second=a is None)


def first_divergence(lookup: Lookup, survey: Survey) -> list[Finding]:
    """Find the first event that only one run has, where the numbers of steps or values differ."""
    later = survey.boundaries and not survey.several_threads
    alignment = lookup.alignment(survey.boundaries + survey.first_span[0] if later else 0)
    if alignment is None:
        return []
    longer_b = survey.totals[1] > survey.totals[0]
    for in_b in (longer_b, not longer_b):
        cache = lookup.b if in_b else lookup.a
        event = _first_lone(alignment.mirrored() if in_b else alignment, cache)
        if event is not None:
            return [block_start(lookup, None if in_b else event, event if in_b else None)]
    return []


def _first_lone(alignment: Alignment, cache: EventCache) -> Event | None:
    """Return the first event that only the first run has; events at the end of a script do not count."""
    for seq in alignment.a.seqs:
        event = None if seq in alignment.to_b else cache.get(seq)
        if event is not None and event.kind != EventKind.RNG and event.op != END:
            return event
    return None


def _block(alignment: Alignment, event: Event) -> list[int]:
    """Return the rows around an event, of the first run and of one thread, that have no partner."""
    stream, at = alignment.a, alignment.a.index[event.seq]

    def run(rows: range) -> list[int]:
        block = []
        for row in rows:
            if stream.threads[row] == event.thread:
                if stream.seqs[row] in alignment.to_b:
                    break
                block.append(row)
        return block

    return [*reversed(run(range(at - 1, -1, -1))), at, *run(range(at + 1, len(stream.seqs)))]


def _meanwhile(alignment: Alignment, row: int, cache: EventCache) -> Event | None:
    """Return what the second run did at the same point: the event after the last common one."""
    mine, other = alignment.a, alignment.b
    thread = mine.threads[row]
    before = next((i for i in range(row - 1, -1, -1) if mine.threads[i] == thread), None)
    first = 0 if before is None else other.index[alignment.to_b[mine.seqs[before]]] + 1
    for i in range(first, len(other.seqs)):
        event = cache.get(other.seqs[i]) if other.threads[i] == thread else None
        if event is not None and event.kind != EventKind.RNG and event.op != END:
            return event
    return None


def start_points(survey: Survey) -> tuple[list[tuple[str, Point]], list[Finding]]:
    """Return the state tensors that differ, and findings about those that only one run has."""
    starts, one_sided = [], []
    for pair in survey.first.state.pairs if survey.first else ():
        if pair.a is not None and pair.b is not None:
            starts.append(
                (pair.name, Point(pair.a.event.seq, pair.a.position, pair.b.event.seq, pair.b.position))
            )
        else:
            line = Evidence.of(EvidenceCode.ONE_SIDED_TENSOR, pair.only_in, pair.role, pair.name, pair.info)
            a, b = (tensor.event if tensor else None for tensor in (pair.a, pair.b))
            one_sided.append(_findings.finding(a, b, OriginKind.CONTROL_FLOW, evidence=(line,)))
    return starts, one_sided


def read_points(a: Record, b: Record, survey: Survey) -> list[Point]:
    """Return the reads that differ."""
    return [point for point, kind in _output_points(a, b, survey) if kind == EventKind.READ]


def save_points(a: Record, b: Record, survey: Survey) -> list[Point]:
    """Return the saves that differ."""
    return [point for point, kind in _output_points(a, b, survey) if kind == EventKind.SAVE]


def _output_points(a: Record, b: Record, survey: Survey) -> Iterator[tuple[Point, EventKind]]:
    pairs = survey.first.outputs.differing if survey.first else [survey.unmatched] if survey.unmatched else []
    for seq_a, seq_b in pairs:
        ours, theirs = a.event(seq_a), b.event(seq_b)
        for i, (x, y) in enumerate(zip(ours.digests, theirs.digests, strict=False)):
            if x != y:
                yield Point(seq_a, i, seq_b, i), ours.kind


def last_steps(a: Record, b: Record, survey: Survey) -> tuple[int, int]:
    """Return the last step of each run to examine: the first that differs."""
    if survey.first is None:
        return a.info.steps, b.info.steps
    return survey.first.a.last, survey.first.b.last
