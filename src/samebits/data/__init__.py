"""Order and randomness of training data as functions of the seed, the epoch and the sample: docs/data.md.

Importing the package imports neither torch nor numpy; its names do, when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from samebits.data.lengths import BatchByLength
    from samebits.data.loader import DataLoader
    from samebits.data.permutation import Permutation
    from samebits.data.samplers import Listed, Sequential, Shuffled
    from samebits.data.weighted import Weighted

__all__ = ["BatchByLength", "DataLoader", "Listed", "Permutation", "Sequential", "Shuffled", "Weighted"]

_HOMES = {
    "BatchByLength": "lengths",
    "DataLoader": "loader",
    "Listed": "samplers",
    "Permutation": "permutation",
    "Sequential": "samplers",
    "Shuffled": "samplers",
    "Weighted": "weighted",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return globals()[name]
