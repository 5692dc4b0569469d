"""Finds where two runs begin to do different things."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.comparison import entries
from samebits.comparison.evidence import EvidenceCode
from samebits.recording.events import END

if TYPE_CHECKING:
    from samebits.comparison.align import Alignment
    from samebits.comparison.lookup import EventCache, Lookup
    from samebits.comparison.results import Finding
    from samebits.comparison.survey import Survey
    from samebits.recording.events import Event


def block_start(lookup: Lookup, a: Event | None, b: Event | None) -> Finding:
    """Blame the beginning of the stretch of events, around one of them, that only one run has.

    Args:
        lookup: the records.
        a: an event that only the first run has, if any.
        b: an event that only the second run has, if any.
    """
    event = a or b
    if event is None:
        raise ValueError("a parting needs an event that one run does not have")
    alignment = lookup.alignment(event.step if a else lookup.step_in_a(event.step))
    if alignment is None:
        return entries.lost(a, b, EvidenceCode.TOO_LONG_TO_ALIGN)
    if a is None:
        alignment = alignment.mirrored()
    if event.seq not in alignment.a.index:
        return entries.lost(a, b, EvidenceCode.OUT_OF_PLACE)
    rows = _block(alignment, event)
    start = (lookup.a if a else lookup.b).get(alignment.a.seqs[rows[0]])
    twin = _meanwhile(alignment, rows[0], lookup.b if a else lookup.a)
    sides = (start, twin) if a else (twin, start)
    return entries.parting(*sides, of_second=a is None)


def first_parting(lookup: Lookup, found: Survey) -> list[Finding]:
    """Where runs part that gave different numbers of steps or values: the first event that only one has."""
    later = found.boundaries and not found.several_threads
    alignment = lookup.alignment(found.boundaries + found.first_span[0] if later else 0)
    if alignment is None:
        return []
    longer_b = found.totals[1] > found.totals[0]
    for in_b in (longer_b, not longer_b):
        cache = lookup.b if in_b else lookup.a
        event = _first_lone(alignment.mirrored() if in_b else alignment, cache)
        if event is not None:
            return [block_start(lookup, None if in_b else event, event if in_b else None)]
    return []


def _first_lone(alignment: Alignment, cache: EventCache) -> Event | None:
    """The first event that only the first run has; what is written when a script ends does not count."""
    for seq in alignment.a.seqs:
        event = None if seq in alignment.to_b else cache.get(seq)
        if event is not None and event.kind != "rng" and event.op != END:
            return event
    return None


def _block(alignment: Alignment, event: Event) -> list[int]:
    """The rows of the first run's stream, without a partner and in one thread, that an event is among."""
    stream, at = alignment.a, alignment.a.index[event.seq]

    def run(rows: range) -> list[int]:
        found = []
        for row in rows:
            if stream.threads[row] == event.thread:
                if stream.seqs[row] in alignment.to_b:
                    break
                found.append(row)
        return found

    return [*reversed(run(range(at - 1, -1, -1))), at, *run(range(at + 1, len(stream.seqs)))]


def _meanwhile(alignment: Alignment, row: int, cache: EventCache) -> Event | None:
    """What the second run did at the same point: what follows the partner of the last common event."""
    mine, other = alignment.a, alignment.b
    thread = mine.threads[row]
    before = next((i for i in range(row - 1, -1, -1) if mine.threads[i] == thread), None)
    first = 0 if before is None else other.index[alignment.to_b[mine.seqs[before]]] + 1
    for i in range(first, len(other.seqs)):
        event = cache.get(other.seqs[i]) if other.threads[i] == thread else None
        if event is not None and event.kind != "rng" and event.op != END:
            return event
    return None
