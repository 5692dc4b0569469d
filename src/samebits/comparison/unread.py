"""Recognises state that differs only in memory that nothing wrote and nothing read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.comparison.flow import same_contents, writers_of
from samebits.comparison.ops import allocates, differing_inputs, moves
from samebits.comparison.points import Point

if TYPE_CHECKING:
    from samebits.comparison.lookup import Lookup
    from samebits.recording.events import Event


def is_unread(lookup: Lookup, start: Point) -> bool:
    """Whether a state tensor's difference is that of memory as it was allocated, at most copied since.

    Args:
        lookup: the records.
        start: the tensor, in its `step` event.
    """
    if start.links(lookup) is None:
        return False
    pending, seen = [start], {start}
    while pending:
        sources = _sources(lookup, pending.pop())
        if sources is None:
            return False
        pending += [point for point in sources if point not in seen]
        seen.update(sources)
    return True


def _sources(lookup: Lookup, point: Point) -> list[Point] | None:
    """The differing tensors that a differing tensor was copied from; None when it is more than a copy."""
    found: list[Point] = []
    for writers in writers_of(lookup, point):
        if not writers.paired:
            return None
        a, b = writers.pair
        if allocates(a):
            return None if same_contents(writers) or a.arguments != b.arguments else found
        if same_contents(writers):
            continue
        if not moves(a) or a.arguments != b.arguments:
            return None
        found += [Point(a.seq, i, b.seq, j) for i, j in differing_inputs(a, b)]
        if _renews(a, writers.memories[0]):
            return found
    return None


def _renews(event: Event, memory: int) -> bool:
    """Whether an op made its memory anew, so that nothing in it is older."""
    return all(link.memory != memory for i, link in enumerate(event.links) if event.tensors[i].role == "in")
