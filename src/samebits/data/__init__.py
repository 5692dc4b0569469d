"""Order and randomness of data as functions of the seed, the epoch and the sample: docs/reference/data.md.

Importing the package imports neither torch nor numpy; its names do, when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits._runtime.lazy import late_dir, late_names

if TYPE_CHECKING:
    from samebits.data.loader import DataLoader
    from samebits.data.permutation import Permutation
    from samebits.data.samplers import BatchByLength, Listed, Sequential, Shuffled, Weighted

__all__ = ["BatchByLength", "DataLoader", "Listed", "Permutation", "Sequential", "Shuffled", "Weighted"]

_HOMES = {
    "BatchByLength": "samplers",
    "DataLoader": "loader",
    "Listed": "samplers",
    "Permutation": "permutation",
    "Sequential": "samplers",
    "Shuffled": "samplers",
    "Weighted": "samplers",
}

__getattr__ = late_names(__name__, _HOMES)
__dir__ = late_dir(_HOMES)
