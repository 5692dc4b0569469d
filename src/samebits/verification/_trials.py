"""On what terms runs with a change are compared: how far they go, and how many pairs show anything."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from samebits.causes import specification_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from samebits.causes import Cause
    from samebits.comparison.results import Comparison
    from samebits.verification._state import State

MOST_PAIRS = 12
_LIKELIHOOD = 0.05  # accepted probability that this many pairs are identical by chance
_LEAST, _USUAL = 2, 3
_SLOWEST, _SLACK_S = 3.0, 20.0  # times the first run, plus seconds
_SHORT_S = 20.0  # a script that takes no longer is run to its end with a change
_SPARE_STEPS = 3


def pairs_needed(
    causes: Collection[Cause], same: int = 0, different: int = 1, *, weak: bool = False
) -> tuple[int, int]:
    """Return how many pairs are needed to say that a difference is gone, and how many are better.

    Where pairs that had the difference were identical, it shows only sometimes: then so many are needed that
    they would all be identical by chance once in twenty times at most.

    Args:
        causes: what the difference may come from.
        same: how many pairs were identical although nothing was changed.
        different: how many were not.
        weak: nothing in the record shows that what is pinned was at work: then the pairs have to be so many
            that, of pairs of one kind, just these would be the identical ones once in twenty times at most.
    """
    if weak and not same:
        enough = (n for n in range(_USUAL, MOST_PAIRS) if math.comb(different + n, n) * _LIKELIHOOD >= 1)
        needed = next(enough, MOST_PAIRS)
        return needed, needed
    if not same:
        never_alike = causes and all(specification_of(cause).never_alike for cause in causes)
        return (1, 1) if never_alike else (_LEAST, _USUAL)  # for other causes one pair says little
    needed = math.ceil(math.log(_LIKELIHOOD) / math.log(same / (same + different)))
    return min(max(_LEAST, needed), MOST_PAIRS), min(max(_USUAL, needed), MOST_PAIRS)


def last_step(state: State) -> int | None:
    """Return the last step of runs with a change; None where they go to their ends."""
    first_step = state.comparison.first_step
    if first_step is None or state.comparison.several_threads or state.compared.first.seconds <= _SHORT_S:
        return None
    return first_step + _SPARE_STEPS


def least_steps(comparison: Comparison) -> int:
    """Return how many steps identical runs must make to say that a difference is gone: 0 for any number.

    Where the number of steps is what differs, or several threads make them, it says nothing.
    """
    first = comparison.first_step
    if first is None or comparison.several_threads:
        return 0
    return min(first + 1, comparison.steps)


def time_limit(seconds: float) -> float:
    """Return after how many seconds a run with a change is ended.

    Args:
        seconds: what the first run took, with nothing changed.
    """
    return _SLOWEST * seconds + _SLACK_S
