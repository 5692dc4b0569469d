"""Walks the writes to one memory back, in both runs together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from samebits.comparison.ops import allocates, differing_inputs, moves, previous_writer, written
from samebits.records.events import NO_WRITER
from samebits.records.kinds import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.comparison.lookup import EventCache, Lookup
    from samebits.records.events import Event, Link


class Point(NamedTuple):
    """A tensor of an event in each run.

    Args:
        seq_a: the event of the first run.
        position_a: the position of the tensor in it.
        seq_b: the event of the second run.
        position_b: the position of the tensor in it.
    """

    seq_a: int
    position_a: int
    seq_b: int
    position_b: int

    def links(self, lookup: Lookup) -> tuple[Link, Link] | None:
        """Return where the contents came from in each run; None when that is not recorded."""
        a, b = lookup.a.get(self.seq_a), lookup.b.get(self.seq_b)
        if a is None or b is None or self.position_a >= len(a.links) or self.position_b >= len(b.links):
            return None
        return a.links[self.position_a], b.links[self.position_b]


_MOST_WRITES = 10_000


@dataclass(frozen=True)
class Writers:
    """The next earlier write to a memory in each run.

    Args:
        events: the writes; None where there is none.
        memories: the serial number of the memory in each run.
        paired: whether they are the same event.
    """

    events: tuple[Event | None, Event | None]
    memories: tuple[int, int]
    paired: bool

    @property
    def ended(self) -> bool:
        """True if neither run has an earlier write."""
        return self.events == (None, None)

    @property
    def pair(self) -> tuple[Event, Event]:
        """Both writes, where they are paired."""
        a, b = self.events
        if a is None or b is None:
            raise ValueError("these writers are not paired")
        return a, b


def same_contents(writers: Writers) -> bool:
    """Tell whether two paired writes left the same contents in the memory."""
    ours, theirs = (written(event, m) for event, m in zip(writers.pair, writers.memories, strict=True))
    a, b = writers.pair
    return [a.digests[i] for i in ours] == [b.digests[i] for i in theirs]


class _Side:
    """One run's chain of writes to the memory that a tensor lives on."""

    def __init__(self, cache: EventCache, seq: int, position: int) -> None:
        consumer = cache.get(seq)
        if consumer is None:
            raise ValueError("the consumer is not in the record")
        link = consumer.links[position]
        self._cache = cache
        self.memory = link.memory
        self._info = consumer.tensors[position]
        self._digest = consumer.digests[position]
        self.writer = None if link.writer == NO_WRITER else cache.get(link.writer)

    def back(self) -> None:
        """Go to the write before."""
        if self.writer is not None:
            before = previous_writer(self.writer, self.memory)
            self.writer = None if before == NO_WRITER else self._cache.get(before)

    def explains(self) -> bool:
        """Tell whether the write can have made what the consumer read.

        A tensor of the same dtype and shape that the write left in the memory must have the consumer's
        contents. Otherwise it wrote another part, or the address now belongs to memory made elsewhere.
        """
        if self.writer is None:
            return True
        written_tensors = [(self.writer.tensors[i], i) for i in written(self.writer, self.memory)]
        form = (self._info.dtype, self._info.shape)
        alike = [i for info, i in written_tensors if (info.dtype, info.shape) == form]
        return not alike or any(self.writer.digests[i] == self._digest for i in alike)


def writers_of(lookup: Lookup, point: Point) -> Iterator[Writers]:
    """Yield the writes to the memory of a tensor, the last first, paired while both runs have the same ones.

    A write that only one run has is skipped if it did not make the tensor's contents. The last value is ended
    or not paired.
    """
    a = _Side(lookup.a, point.seq_a, point.position_a)
    b = _Side(lookup.b, point.seq_b, point.position_b)
    for _ in range(_MOST_WRITES):
        events, memories = (a.writer, b.writer), (a.memory, b.memory)
        if a.writer is not None and b.writer is not None and lookup.partners(a.writer, b.writer):
            yield Writers(events, memories, paired=True)
            a.back()
            b.back()
        elif a.writer is None and b.writer is None:
            break
        elif not a.explains():
            a.back()
        elif not b.explains():
            b.back()
        else:
            yield Writers(events, memories, paired=False)
            return
    yield Writers((None, None), (a.memory, b.memory), paired=False)


def is_unread(lookup: Lookup, start: Point) -> bool:
    """Tell whether a state tensor differs only by memory as it was allocated, at most copied since.

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
    """Return the differing tensors that a tensor was copied from; None when it is more than a copy."""
    sources: list[Point] = []
    for writers in writers_of(lookup, point):
        if not writers.paired:
            return None
        a, b = writers.pair
        if allocates(a):
            return None if same_contents(writers) or a.arguments != b.arguments else sources
        if same_contents(writers):
            continue
        if not moves(a) or a.arguments != b.arguments:
            return None
        sources += [Point(a.seq, i, b.seq, j) for i, j in differing_inputs(a, b)]
        if _renews(a, writers.memories[0]):
            return sources
    return None


def _renews(event: Event, memory: int) -> bool:
    """Tell whether an op made its memory anew, so that nothing in it is older."""
    return all(
        link.memory != memory for i, link in enumerate(event.links) if event.tensors[i].role == Role.IN
    )
