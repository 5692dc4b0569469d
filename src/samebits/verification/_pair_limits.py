"""How many pairs of runs with a change are needed, how many steps they make, and how long they may take."""

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

    If unchanged pairs were identical too, the difference shows only sometimes. Then enough pairs are needed
    that chance would make all of them identical at most once in twenty times.

    Args:
        causes: what the difference may come from.
        same: how many pairs were identical although nothing was changed.
        different: how many were not.
        weak: nothing in the record shows that the pinned source was at work. Then enough pairs are needed
            that chance would make exactly these pairs identical at most once in twenty times.
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

    If the number of steps differs, or several threads make steps, the number says nothing.
    """
    first = comparison.first_step
    if first is None or comparison.several_threads:
        return 0
    return min(first + 1, comparison.steps)


def time_limit(seconds: float) -> float:
    """Return the number of seconds after which a run with a change is ended.

    Args:
        seconds: the duration of the first run, with nothing changed.
    """
    return _SLOWEST * seconds + _SLACK_S
