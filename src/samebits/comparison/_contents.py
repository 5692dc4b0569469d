"""Searches for the origin of contents that no recorded write explains, by events shortly before.

The index of the events of a run is made stretch by stretch. A search asks the same of thousands of
neighbouring events, and reading all events before each of them would take quadratic time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from samebits.comparison._data_flow import Point
from samebits.comparison._sites import site_key
from samebits.comparison.ops import attaches_memory, differing_inputs, positions
from samebits.records.kinds import EventKind, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from samebits._runtime.frames import Site
    from samebits.comparison.lookup import EventCache, Lookup
    from samebits.records.events import Event

REACH = 4096  # events looked back over
_CACHED_STRETCHES = 64

_Index = dict["Hashable", list[int]]


@dataclass
class _Stretch:
    """The numbers of consecutive events in order: by contents given, memory viewed, and line that drew."""

    gave: _Index = field(default_factory=lambda: defaultdict(list))
    views: _Index = field(default_factory=lambda: defaultdict(list))
    draws: _Index = field(default_factory=lambda: defaultdict(list))

    def add(self, event: Event) -> None:
        """Take in the next event."""
        if event.kind == EventKind.OP:
            given = positions(event, Role.OUT)
            for memory in _viewed(event):
                self.views[memory].append(event.seq)
        else:
            given = positions(event, Role.VALUE) if event.kind == EventKind.BATCH else []
        for digest in {event.digests[i] for i in given}:
            self.gave[digest].append(event.seq)
        if positions(event, Role.RNG):
            self.draws[event.site].append(event.seq)


class Nearby:
    """The events shortly before another.

    Args:
        get: returns an event by number, None where the record has none.
    """

    def __init__(self, get: Callable[[int], Event | None]) -> None:
        self._get = get
        self._stretches: OrderedDict[int, _Stretch] = OrderedDict()

    def last_that_gave(self, digest: bytes, before: int) -> int | None:
        """Return the last op or batch before an event that gave some contents."""
        return next(self._back("gave", digest, before), None)

    def views(self, memory: int, before: int) -> Iterator[int]:
        """Yield the ops before an event that took a view of a memory, the last first."""
        return self._back("views", memory, before)

    def draws(self, site: Site | None, first: int, before: int) -> list[int]:
        """Return the events of a line that drew, from one number to before another, in order."""
        seqs: list[int] = []
        for number in range(max(first, 0) // REACH, max(before - 1, 0) // REACH + 1):
            seqs += self._stretch(number).draws.get(site, ())
        return seqs[bisect_left(seqs, first) : bisect_left(seqs, before)]

    def _back(self, kind: str, key: Hashable, before: int) -> Iterator[int]:
        for number in range(max(before - 1, 0) // REACH, max(before - REACH, 0) // REACH - 1, -1):
            listed: list[int] = getattr(self._stretch(number), kind).get(key, [])
            first, last = bisect_left(listed, before - REACH + 1), bisect_left(listed, before)
            yield from reversed(listed[first:last])

    def _stretch(self, number: int) -> _Stretch:
        stretch = self._stretches.get(number)
        if stretch is None:
            stretch = self._stretches[number] = _Stretch()
            for seq in range(number * REACH, (number + 1) * REACH):
                event = self._get(seq)
                if event is not None:
                    stretch.add(event)
            if len(self._stretches) > _CACHED_STRETCHES:
                self._stretches.popitem(last=False)
        else:
            self._stretches.move_to_end(number)
        return stretch


def is_view(event: Event, memory: int) -> bool:
    """Tell whether an op took a view of a memory."""
    return event.kind == EventKind.OP and memory in _viewed(event)


def _viewed(event: Event) -> set[int]:
    """Return the memories that an op both reads and returns."""
    sides: dict[Role, set[int]] = {Role.IN: set(), Role.OUT: set()}
    for info, link in zip(event.tensors, event.links, strict=False):
        if info.role in sides:
            sides[info.role].add(link.memory)
    return sides[Role.IN] & sides[Role.OUT]


def made_by(lookup: Lookup, point: Point) -> tuple[Event, Event] | None:
    """Find the last event of both runs that gave the contents of a tensor, if it is the same event.

    A batch collated in the main process, a sparse tensor and a value that went through NumPy have no recorded
    writer, but an op may have given just these contents shortly before, in both runs.
    """
    a, b = lookup.a.get(point.seq_a), lookup.b.get(point.seq_b)
    if a is None or b is None:
        return None
    first = lookup.a.last_that_gave(a.digests[point.position_a], a.seq)
    second = lookup.b.last_that_gave(b.digests[point.position_b], b.seq)
    if first is None or second is None or not lookup.partners(first, second):
        return None
    return first, second


def differing_view(lookup: Lookup, point: Point) -> tuple[Event, Event] | None:
    """Find the first view of a tensor's memory that the two runs took with other arguments.

    The values written through such views may be the same while the whole differs.
    """
    links, views = point.links(lookup), None
    if links is None:
        return None
    for seq in lookup.a.nearby.views(links[0].memory, point.seq_a):
        event = lookup.a.get(seq)
        partner = None if event is None else lookup.partner_in_b(event)
        twin = None if partner is None else lookup.b.get(partner)
        if event is None or twin is None:
            continue
        if twin.arguments != event.arguments and is_view(twin, links[1].memory):
            views = event, twin
    return views


def relocated_view(lookup: Lookup, point: Point) -> tuple[Event, Event] | None:
    """Find the ops that made two tensors views of different parts of memory with the same contents.

    A loop in another order takes the same views at other times, so equal views prove nothing.
    """
    links = point.links(lookup)
    if links is None:
        return None
    caches, before = (lookup.a, lookup.b), (point.seq_a, point.seq_b)
    a, b = (
        next((cache.get(seq) for seq in cache.nearby.views(link.memory, last)), None)
        for cache, link, last in zip(caches, links, before, strict=True)
    )
    if (
        a is None
        or b is None
        or (a.op, site_key(a.site)) != (b.op, site_key(b.site))
        or a.arguments == b.arguments
    ):
        return None
    return None if differing_inputs(a, b) else (a, b)


def same_outputs(a: Event, b: Event) -> bool:
    """Tell whether an event gave the same in both runs, so that the choice of an output differed."""
    role = Role.OUT if a.kind == EventKind.OP else Role.VALUE
    return [a.digests[i] for i in positions(a, role)] == [b.digests[i] for i in positions(b, role)]


def batch_sources(lookup: Lookup, a: Event, b: Event) -> tuple[list[Point], list[tuple[Event, Event]]]:
    """Find where the differing tensors of a batch come from, as far as it is recorded.

    The main process unpickles a worker's tensors at the loader's line; that does not count as making them.

    Returns:
        The tensors whose memory was written before, and the events of both runs that gave the contents of the
        batch and differ from each other.
    """
    points = [
        Point(a.seq, i, b.seq, i)
        for i in positions(a, Role.VALUE)
        if i < min(len(a.links), len(b.links), len(b.digests)) and a.digests[i] != b.digests[i]
    ]
    linked = [
        p for p in points if _written(lookup.a, a, p.position_a) and _written(lookup.b, b, p.position_b)
    ]
    makers = [maker for maker in (made_by(lookup, p) for p in points) if maker is not None]
    return linked, [m for m in makers if not _unpickled(a, m[0]) and not same_outputs(*m)]


def _written(cache: EventCache, batch: Event, position: int) -> bool:
    writer = cache.get(batch.links[position].writer)
    return writer is not None and not _unpickled(batch, writer)


def _unpickled(batch: Event, maker: Event) -> bool:
    return attaches_memory(maker) and maker.site == batch.site


class SiteDraws:
    """The draws at a line that gave other numbers in each run, such as a loader's own.

    Each draw is examined once, however many events of the line are asked about, in any order.

    Args:
        lookup: the records.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        # By line and stretch of `REACH` events: where the examined first part ends, and the last part begins.
        self._examined: dict[tuple[Site, int], tuple[int, int]] = {}
        self._differing_seqs: dict[Site, list[int]] = {}

    def before(self, a: Event) -> tuple[bool, list[tuple[Event, Event]]]:
        """Tell whether such draws lie shortly before an event of the first run, and return the new ones."""
        if a.site is None:
            return False, []
        first, last = max(0, a.seq - REACH + 1), a.seq
        new = [
            pair for seq in self._unseen(a.site, first, last) if (pair := self._differing(seq)) is not None
        ]
        seqs = self._differing_seqs.setdefault(a.site, [])
        seqs += [event.seq for event, _ in new]
        seqs.sort()
        at = bisect_left(seqs, first)
        return at < len(seqs) and seqs[at] < last, new

    def _unseen(self, site: Site, first: int, last: int) -> Iterator[int]:
        """Yield the draws at a line from one event to before another that were not examined yet.

        Such a range of events ends a stretch or begins one, so the examined events of a stretch are a first
        part and a last part.
        """
        for number in range(first // REACH, (last - 1) // REACH + 1):
            begin, end = number * REACH, (number + 1) * REACH
            head, tail = self._examined.get((site, number), (begin, end))
            low, high = max(first, begin, head), min(last, end, tail)
            if low < high:
                yield from self._lookup.a.nearby.draws(site, low, high)
            if first <= begin:
                head = max(head, high)
            else:
                tail = min(tail, low)
            self._examined[site, number] = head, tail

    def _differing(self, seq: int) -> tuple[Event, Event] | None:
        event = self._lookup.a.get(seq)
        partner = None if event is None else self._lookup.partner_in_b(event)
        twin = None if partner is None else self._lookup.b.get(partner)
        if event is None or twin is None or _drawn(twin) == _drawn(event):
            return None
        return event, twin


def _drawn(event: Event) -> list[bytes]:
    """Return the generator's state and the numbers; what the memory held before is no part of a draw."""
    return [event.digests[i] for i in (*positions(event, Role.RNG), *positions(event, Role.OUT))]
