"""An index of the events of one run, made stretch by stretch: what gave some contents, viewed a memory, drew.

A search asks the same of thousands of events that lie side by side. Reading all that lie before each of them
would take time that grows with the square of their number.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from samebits.comparison._data_flow import Point
from samebits.comparison.ops import brings, differing_inputs, positions
from samebits.records.kinds import EventKind, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from samebits._runtime.frames import Site
    from samebits.comparison.lookup import EventCache, Lookup
    from samebits.records.events import Event

REACH = 4096  # events looked back over
_KEPT = 64  # stretches of so many events

_Index = dict["Hashable", list[int]]


@dataclass
class _Stretch:
    """Numbers of some events that follow each other, in order, by what is asked for."""

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
        get: gives an event by number, None where the record has none.
    """

    def __init__(self, get: Callable[[int], Event | None]) -> None:
        self._get = get
        self._stretches: OrderedDict[int, _Stretch] = OrderedDict()

    def last_that_gave(self, digest: bytes, before: int) -> int | None:
        """The last op or batch before an event that gave some contents."""
        return next(self._back("gave", digest, before), None)

    def views(self, memory: int, before: int) -> Iterator[int]:
        """The ops before an event that took a view of a memory, the last first."""
        return self._back("views", memory, before)

    def draws(self, site: Site | None, first: int, before: int) -> list[int]:
        """The events of a line with a generator, from one number to before another, in order."""
        found: list[int] = []
        for number in range(max(first, 0) // REACH, max(before - 1, 0) // REACH + 1):
            found += self._stretch(number).draws.get(site, ())
        return found[bisect_left(found, first) : bisect_left(found, before)]

    def _back(self, kind: str, key: Hashable, before: int) -> Iterator[int]:
        for number in range(max(before - 1, 0) // REACH, max(before - REACH, 0) // REACH - 1, -1):
            listed: list[int] = getattr(self._stretch(number), kind).get(key, [])
            first, last = bisect_left(listed, before - REACH + 1), bisect_left(listed, before)
            yield from reversed(listed[first:last])

    def _stretch(self, number: int) -> _Stretch:
        found = self._stretches.get(number)
        if found is None:
            found = self._stretches[number] = _Stretch()
            for seq in range(number * REACH, (number + 1) * REACH):
                event = self._get(seq)
                if event is not None:
                    found.add(event)
            if len(self._stretches) > _KEPT:
                self._stretches.popitem(last=False)
        else:
            self._stretches.move_to_end(number)
        return found


def is_view(event: Event, memory: int) -> bool:
    """Whether an op took a view of a memory."""
    return event.kind == EventKind.OP and memory in _viewed(event)


def _viewed(event: Event) -> set[int]:
    """The memories that an op reads and gives."""
    sides: dict[Role, set[int]] = {Role.IN: set(), Role.OUT: set()}
    for info, link in zip(event.tensors, event.links, strict=False):
        if info.role in sides:
            sides[info.role].add(link.memory)
    return sides[Role.IN] & sides[Role.OUT]


def made_by(lookup: Lookup, point: Point) -> tuple[Event, Event] | None:
    """The last event of both runs that gave the contents of a tensor, if it is the same event.

    A batch collated in the main process, a sparse tensor and a value that went through NumPy have no writer
    on record, but an op may have given just these contents shortly before, in both runs.
    """
    a, b = lookup.a.get(point.seq_a), lookup.b.get(point.seq_b)
    if a is None or b is None:
        return None
    first = lookup.a.last_that_gave(a.digests[point.position_a], a.seq)
    second = lookup.b.last_that_gave(b.digests[point.position_b], b.seq)
    if first is None or second is None or not lookup.partners(first, second):
        return None
    return first, second


def other_part(lookup: Lookup, point: Point) -> tuple[Event, Event] | None:
    """The first view of a tensor's memory that was taken elsewhere in each run: by other arguments.

    What is written through such views may be the same, and the whole differs.
    """
    links, found = point.links(lookup), None
    if links is None:
        return None
    for seq in lookup.a.nearby.views(links[0].memory, point.seq_a):
        event = lookup.a.get(seq)
        partner = None if event is None else lookup.partner_in_b(event)
        twin = None if partner is None else lookup.b.get(partner)
        if event is None or twin is None:
            continue
        if twin.arguments != event.arguments and is_view(twin, links[1].memory):
            found = event, twin
    return found


def other_view(lookup: Lookup, point: Point) -> tuple[Event, Event] | None:
    """The views that two tensors are, where they show different parts of memory that holds the same.

    A loop in another order takes the same views at other times: that they are the same is no help then.
    """
    links = point.links(lookup)
    if links is None:
        return None
    caches, before = (lookup.a, lookup.b), (point.seq_a, point.seq_b)
    a, b = (
        next((cache.get(seq) for seq in cache.nearby.views(link.memory, last)), None)
        for cache, link, last in zip(caches, links, before, strict=True)
    )
    if a is None or b is None or (a.op, a.site) != (b.op, b.site) or a.arguments == b.arguments:
        return None
    return None if differing_inputs(a, b) else (a, b)


def gave_the_same(a: Event, b: Event) -> bool:
    """Whether an event gave the same in both runs: then the choice of an output made the difference."""
    role = Role.OUT if a.kind == EventKind.OP else Role.VALUE
    return [a.digests[i] for i in positions(a, role)] == [b.digests[i] for i in positions(b, role)]


def behind_batch(lookup: Lookup, a: Event, b: Event) -> tuple[list[Point], list[tuple[Event, Event]]]:
    """What the tensors of a batch that differ come from, as far as it is on record.

    The main process unpickles a worker's tensors at the loader's line: that makes nothing.

    Returns:
        tensors whose memory was written before, and events of both runs that gave the same contents as the
        batch, and not the same as each other.
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
    return linked, [m for m in makers if not _unpickled(a, m[0]) and not gave_the_same(*m)]


def _written(cache: EventCache, batch: Event, position: int) -> bool:
    writer = cache.get(batch.links[position].writer)
    return writer is not None and not _unpickled(batch, writer)


def _unpickled(batch: Event, maker: Event) -> bool:
    return brings(maker) and maker.site == batch.site


class SiteDraws:
    """The draws at a line that gave other numbers in each run: a loader's own.

    Each is looked at once, however many events of the line are asked about, in whatever order.

    Args:
        lookup: the records.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        # Of each line and stretch of `REACH` events: up to which event, and from which on, it was looked at.
        self._seen: dict[tuple[Site, int], tuple[int, int]] = {}
        self._found: dict[Site, list[int]] = {}

    def before(self, a: Event) -> tuple[bool, list[tuple[Event, Event]]]:
        """Whether there are such draws shortly before an event of the first run, and those not given yet."""
        if a.site is None:
            return False, []
        first, last = max(0, a.seq - REACH + 1), a.seq
        new = [
            pair for seq in self._unseen(a.site, first, last) if (pair := self._differing(seq)) is not None
        ]
        found = self._found.setdefault(a.site, [])
        found += [event.seq for event, _ in new]
        found.sort()
        at = bisect_left(found, first)
        return at < len(found) and found[at] < last, new

    def _unseen(self, site: Site, first: int, last: int) -> Iterator[int]:
        """The draws at a line from one event to before another, without those that were looked at.

        Such a reach of events ends a stretch or begins one, so what was looked at of a stretch are a first
        part and a last part.
        """
        for number in range(first // REACH, (last - 1) // REACH + 1):
            begin, end = number * REACH, (number + 1) * REACH
            head, tail = self._seen.get((site, number), (begin, end))
            low, high = max(first, begin, head), min(last, end, tail)
            if low < high:
                yield from self._lookup.a.nearby.draws(site, low, high)
            if first <= begin:
                head = max(head, high)
            else:
                tail = min(tail, low)
            self._seen[site, number] = head, tail

    def _differing(self, seq: int) -> tuple[Event, Event] | None:
        event = self._lookup.a.get(seq)
        partner = None if event is None else self._lookup.partner_in_b(event)
        twin = None if partner is None else self._lookup.b.get(partner)
        if event is None or twin is None or _drawn(twin) == _drawn(event):
            return None
        return event, twin


def _drawn(event: Event) -> list[bytes]:
    """The generator's state and the numbers; what the memory held before is no part of a draw."""
    return [event.digests[i] for i in (*positions(event, Role.RNG), *positions(event, Role.OUT))]
