"""How many pairs of runs must be identical before that is more than chance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from samebits.causes import specification_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from samebits.causes import Cause

MOST_PAIRS = 12
_LIKELIHOOD = 0.05  # that so many pairs are identical by chance, where some were
_LEAST, _USUAL = 2, 3


def pairs_needed(
    causes: Collection[Cause], same: int = 0, different: int = 1, *, weak: bool = False
) -> tuple[int, int]:
    """How many pairs are needed to say that a difference is gone, and how many are better.

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
        return (1, 1) if never_alike else (_LEAST, _USUAL)  # of other causes one pair says little
    needed = math.ceil(math.log(_LIKELIHOOD) / math.log(same / (same + different)))
    return min(max(_LEAST, needed), MOST_PAIRS), min(max(_USUAL, needed), MOST_PAIRS)
