"""What a comparison of the ranks of one run says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.comparison.results import Comparison
    from samebits.hooks.frames import Site
    from samebits.recording.notes import Note


@dataclass(frozen=True)
class RankComparison:
    """The verdict over the ranks of one run.

    Args:
        comparison: `different` when replicas part for good, or when ranks that are to divide the data do not;
            its findings say where. `identical` when replicas were compared and stayed equal.
        ranks: the numbers of the ranks that were compared.
        compared: names of the parameters that were compared.
        left_out: what was not compared, and why, in words.
    """

    comparison: Comparison
    ranks: tuple[int, ...]
    compared: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass
class DataShares:
    """What was found about the division of the data.

    Args:
        wrong: what contradicts what the sampler is for: (step, site, text).
        notes: what the user should know.
    """

    wrong: list[tuple[int, Site | None, str]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def words(numbers: Iterable[int]) -> str:
    """Ranks in words: `rank 1`, `ranks 0-2 and 5`."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    parts = [str(a) if a == b else f"{a}{'-' if b > a + 1 else ' and '}{b}" for a, b in found]
    name = "rank" if len(found) == 1 and found[0][0] == found[0][1] else "ranks"
    return f"{name} " + (f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts))


def some(names: Iterable[str], most: int = 3) -> str:
    """The first names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
