"""A tensor of one event of each run whose contents differ: where the search for an origin stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from samebits.comparison.lookup import Lookup
    from samebits.recording.events import Link


class Point(NamedTuple):
    """A tensor of an event in each run.

    Args:
        seq_a: the event of the first run.
        position_a: which of its tensors.
        seq_b: the event of the second run.
        position_b: which of its tensors.
    """

    seq_a: int
    position_a: int
    seq_b: int
    position_b: int

    def links(self, lookup: Lookup) -> tuple[Link, Link] | None:
        """Where the contents came from in each run; None when that is not recorded."""
        a, b = lookup.a.get(self.seq_a), lookup.b.get(self.seq_b)
        if a is None or b is None or self.position_a >= len(a.links) or self.position_b >= len(b.links):
            return None
        return a.links[self.position_a], b.links[self.position_b]
