"""Means over windows and their gradients, one window after the other."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.portable.reference.fma import Array

Bounds = list[tuple[list[int], list[int], list[int]]]
Position = tuple[int, ...]


def mean(wide: Array, narrow: Array, bounds: Bounds, divisor: int) -> None:
    """Fill `narrow` (planes, three sizes) with the means of the windows of `wide`.

    Args:
        wide: float32 or float64.
        narrow: the dtype of `wide`.
        bounds: for each of three dimensions the first, end and count of each output position.
        divisor: 0 for the product of the counts.
    """
    wide, narrow = np.moveaxis(wide, 0, -1), np.moveaxis(narrow, 0, -1)
    for out, inside, count in _windows(bounds):
        total = np.zeros(wide.shape[-1], wide.dtype)
        with np.errstate(all="ignore"):
            for position in inside:
                total = total + wide[position]
            narrow[out] = total / wide.dtype.type(divisor or count)


def spread(wide: Array, narrow: Array, bounds: Bounds, divisor: int) -> None:
    """Add to `wide`, which is +0, each gradient in `narrow` divided among its window."""
    wide, narrow = np.moveaxis(wide, 0, -1), np.moveaxis(narrow, 0, -1)
    for out, inside, count in _windows(bounds):
        with np.errstate(all="ignore"):
            share = narrow[out] / wide.dtype.type(divisor or count)
            for position in inside:
                wide[position] += share


def _windows(bounds: Bounds) -> Iterator[tuple[Position, list[Position], int]]:
    for out in itertools.product(*(range(len(first)) for first, _, _ in bounds)):
        spans = [range(first[o], end[o]) for o, (first, end, _) in zip(out, bounds, strict=True)]
        count = 1
        for o, (_, _, counts) in zip(out, bounds, strict=True):
            count *= counts[o]
        yield out, list(itertools.product(*spans)), count
