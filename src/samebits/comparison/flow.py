"""Walks the writes to one memory back, in both runs together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.comparison.ops import previous_writer, written
from samebits.recording.events import NO_WRITER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.comparison.lookup import EventCache, Lookup
    from samebits.comparison.points import Point
    from samebits.recording.events import Event

_MOST_WRITES = 10_000


@dataclass(frozen=True)
class Writers:
    """The next earlier write to a memory in each run.

    Args:
        events: the writes; None where there is none.
        memories: serial number of the memory in each run.
        paired: whether they are the same event.
    """

    events: tuple[Event | None, Event | None]
    memories: tuple[int, int]
    paired: bool

    @property
    def ended(self) -> bool:
        """Whether neither run has an earlier write."""
        return self.events == (None, None)

    @property
    def pair(self) -> tuple[Event, Event]:
        """Both writes, of writers that are paired."""
        a, b = self.events
        if a is None or b is None:
            raise ValueError("these writers are not paired")
        return a, b


def same_contents(writers: Writers) -> bool:
    """Whether two writes that are paired left the same contents on the memory."""
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
        """Whether the write can be what the consumer found.

        A tensor of the same dtype and shape that the write left on the memory must have the consumer's
        contents: else the write was to another part, or the address is now that of memory made elsewhere.
        """
        if self.writer is None:
            return True
        written_tensors = [(self.writer.tensors[i], i) for i in written(self.writer, self.memory)]
        form = (self._info.dtype, self._info.shape)
        alike = [i for info, i in written_tensors if (info.dtype, info.shape) == form]
        return not alike or any(self.writer.digests[i] == self._digest for i in alike)


def writers_of(lookup: Lookup, point: Point) -> Iterator[Writers]:
    """The writes to the memory of a tensor, the last first, paired as long as they are the same in both runs.

    A write that only one run has, and that did not make what the tensor holds, is passed over. The last value
    is one that is ended or not paired.
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
