"""An index of the events of one run, made stretch by stretch: what gave some contents, viewed a memory, drew.

A search asks the same of thousands of events that lie side by side. Reading all that lie before each of them
would take time that grows with the square of their number.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from samebits.comparison.ops import positions

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from samebits.hooks.frames import Site
    from samebits.recording.events import Event

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
        if event.kind == "op":
            given = positions(event, "out")
            for memory in _viewed(event):
                self.views[memory].append(event.seq)
        else:
            given = positions(event, "value") if event.kind == "batch" else []
        for digest in {event.digests[i] for i in given}:
            self.gave[digest].append(event.seq)
        if positions(event, "rng"):
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
    return event.kind == "op" and memory in _viewed(event)


def _viewed(event: Event) -> set[int]:
    """The memories that an op reads and gives."""
    sides: dict[str, set[int]] = {"in": set(), "out": set()}
    for info, link in zip(event.tensors, event.links, strict=False):
        if info.role in sides:
            sides[info.role].add(link.memory)
    return sides["in"] & sides["out"]
