"""Whether a global generator went back to where it has been.

A Mersenne Twister makes 624 numbers at a time. Which 624 it is in, and how many it has given out, says where
it stands: two states that agree in that are the same point of the same stream, up to a chance of 2**-64.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from samebits.determinism.rng_sources import BUILT_IN

if TYPE_CHECKING:
    from samebits.determinism.rng_sources.source import Position

_REMEMBERED = 100_000


class Rewind(NamedTuple):
    """A generator that stands where it stood before.

    Args:
        source: `torch`, `numpy`, `python`, `cuda:0`.
        earlier: when it stood there: `step 3`, `the seeding`.
    """

    source: str
    earlier: str


class Path:
    """Where one generator has been."""

    def __init__(self) -> None:
        self.at: Position | None = None
        self._seen: OrderedDict[int, tuple[int, str]] = OrderedDict()

    def earlier(self, position: Position) -> str:
        """When the generator was there, or farther in the same numbers; empty when it never was."""
        farthest, when = self._seen.get(position[0], (-1, ""))
        return when if position[1] <= farthest else ""

    def go(self, position: Position, when: str) -> None:
        """It is there now, and goes on from there; when it went back, what lay ahead is forgotten."""
        self.at = position
        if self.earlier(position):
            self._seen.clear()
        if position[1] > self._seen.get(position[0], (-1, ""))[0]:
            self._seen[position[0]] = (position[1], when)
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)


class RngWatch:
    """Notices that a global generator went back to where it has been."""

    def __init__(self) -> None:
        # Devices first: so they are told in this order when several went back at once.
        self._readers = [source.position_reader() for source in reversed(BUILT_IN)]
        self.paths: dict[str, Path] = {}

    def positions(self) -> dict[str, Position]:
        """Where every generator stands that can be read."""
        return {name: position for read in self._readers for name, position in read().items()}

    def begin(self) -> None:
        """What is known of the past is forgotten; the generators start from where they stand."""
        self.paths.clear()
        self.note("the start of control")

    def note(self, when: str) -> list[Rewind]:
        """Remember where every generator stands, and tell which of them went back."""
        rewinds = []
        for source, position in self.positions().items():
            path = self.paths.get(source)
            if path is None:
                path = self.paths[source] = Path()
            if position == path.at:
                continue
            earlier = path.earlier(position)
            if earlier:
                rewinds.append(Rewind(source, earlier))
            path.go(position, when)
        return rewinds
