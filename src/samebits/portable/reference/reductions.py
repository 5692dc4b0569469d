"""Reductions: chunks of 256, 16 lanes, trees ("Reductions" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from samebits.portable.reference.fma import fma

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from samebits.portable.reference.fma import Array

    Take = Callable[[Array, int], Array]

CHUNK = 256
LANES = 16


def sum_over(x: Array, dims: Sequence[int]) -> Array:
    """Return the sum over some dimensions, which are left out of the result.

    Args:
        x: float32 or float64.
        dims: none negative, in ascending order.
    """
    return _reduce(len(flat := _last(x, dims)), lambda lane, i: lane + flat[i], flat)


def sum_squares_over(x: Array, dims: Sequence[int]) -> Array:
    """Return the sum of squares."""
    return sum_products_over(x, x, dims)


def sum_products_over(a: Array, b: Array, dims: Sequence[int]) -> Array:
    """Return the sum of products of two arrays of one shape."""
    left, right = _last(a, dims), _last(b, dims)
    return _reduce(len(left), lambda lane, i: fma(left[i], right[i], lane), left)


def sum_magnitudes_over(x: Array, dims: Sequence[int]) -> Array:
    """Return the sum of absolute values."""
    return sum_over(np.abs(x), dims)


def product_over(x: Array, dims: Sequence[int]) -> Array:
    """Return the product: lanes start at 1, and multiply."""
    flat = _last(x, dims)
    return _reduce(len(flat), lambda lane, i: lane * flat[i], flat, np.multiply)


def sum_deviations_over(x: Array, mean: Array, dims: Sequence[int]) -> Array:
    """Return the sum of squares of x - mean; `mean` has the shape of the result."""
    deviations = _subtract(x, mean, dims)
    return sum_products_over(deviations, deviations, dims)


def sum_cross_over(x: Array, mean: Array, b: Array, dims: Sequence[int]) -> Array:
    """Return the sum of products of b and x - mean."""
    return sum_products_over(b, _subtract(x, mean, dims), dims)


def _subtract(x: Array, mean: Array, dims: Sequence[int]) -> Array:
    with np.errstate(all="ignore"):
        deviations: Array = x - np.expand_dims(mean, tuple(dims))
    return deviations


def _last(x: Array, dims: Sequence[int]) -> Array:
    """Return the reduced dimensions as one, in front."""
    kept = [d for d in range(x.ndim) if d not in dims]
    shape = [x.shape[d] for d in kept]
    rows: Array = x.transpose([*dims, *kept]).reshape(math.prod(x.shape[d] for d in dims), *shape)
    return rows


def _reduce(n: int, take: Take, flat: Array, join: Callable[[Array, Array], Array] = np.add) -> Array:
    one = np.full(flat.shape[1:], join is np.multiply, flat.dtype)
    with np.errstate(all="ignore"):
        sums = [_chunk(range(start, min(start + CHUNK, n)), take, one, join) for start in range(0, n, CHUNK)]
        while len(sums) > 1:
            pairs = [join(a, b) for a, b in zip(sums[::2], sums[1::2], strict=False)]
            sums = pairs + sums[2 * len(pairs) :]
    return sums[0] if sums else one


def _chunk(indices: range, take: Take, one: Array, join: Callable[[Array, Array], Array]) -> Array:
    lanes = [one] * LANES
    for position, i in enumerate(indices):
        lanes[position % LANES] = take(lanes[position % LANES], i)
    half = LANES // 2
    while half:
        lanes = [join(lanes[lane], lanes[lane + half]) for lane in range(half)]
        half //= 2
    return lanes[0]
