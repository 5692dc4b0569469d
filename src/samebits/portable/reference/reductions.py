"""Reductions, running sums, accumulation into positions and means over windows.

Reductions take chunks of 256, 16 lanes and trees; running sums are chains in binary64 ("Reductions" and
"Running sums" in docs/reference/portable-numerics.md). The others go one value after the other.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from samebits.portable.reference.fma import fma

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from samebits.portable.reference.fma import Array

    Take = Callable[[Array, int], Array]

CHUNK = 256
LANES = 16
Bounds = list[tuple[list[int], list[int], list[int]]]
Position = tuple[int, ...]


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
    rest = [d for d in range(x.ndim) if d not in dims]
    shape = [x.shape[d] for d in rest]
    rows: Array = x.transpose([*dims, *rest]).reshape(math.prod(x.shape[d] for d in dims), *shape)
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


def running(x: Array, dim: int, *, product: bool) -> Array:
    """Return the sum, or the product, of the values up to each one.

    Args:
        x: float32 or float64.
        dim: the dimension to run along.
        product: whether products are wanted.
    """
    lines = np.moveaxis(x, dim, 0)
    out = np.empty_like(lines)
    chain = np.full(lines.shape[1:], product, np.float64)
    with np.errstate(all="ignore"):
        for i, values in enumerate(lines.astype(np.float64)):
            chain = chain * values if product else chain + values
            out[i] = chain.astype(x.dtype)
    return np.moveaxis(out, 0, dim)


def accumulate(out: Array, index: Array, src: Array, kind: str, *, skip: bool) -> None:
    """Let `out[n, index[n, m, c], c]` take `src[n, m, c]`, for ascending m.

    Args:
        out: (batch, rows, columns), float32 or float64; changed in place.
        index: (batch, m, columns), int64.
        src: (batch, m, columns), the dtype of `out`.
        kind: `add`, `multiply`, `largest`, `smallest` or `set`.
        skip: whether -1 stands for no row; else negative indices count from the end.
    """
    for n, m, c in np.ndindex(src.shape):
        row = index[n, m, c]
        if row >= 0 or not skip:
            with np.errstate(all="ignore"):
                out[n, row, c] = _taken(out[n, row, c], src[n, m, c], kind)


def _taken(old: Array, new: Array, kind: str) -> Array:
    if kind == "add":
        return old + new
    if kind == "multiply":
        return old * new
    if kind == "set" or np.isnan(new):
        return new
    return new if (new > old if kind == "largest" else new < old) else old


def window_mean(wide: Array, narrow: Array, bounds: Bounds, divisor: int) -> None:
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


def window_spread(wide: Array, narrow: Array, bounds: Bounds, divisor: int) -> None:
    """Add to `wide`, which is +0, each gradient in `narrow` divided among its window."""
    wide, narrow = np.moveaxis(wide, 0, -1), np.moveaxis(narrow, 0, -1)
    for out, inside, count in _windows(bounds):
        with np.errstate(all="ignore"):
            share = narrow[out] / wide.dtype.type(divisor or count)
            for position in inside:
                wide[position] += share


def _windows(bounds: Bounds) -> Iterator[tuple[Position, list[Position], int]]:
    """Yield each output position, the input positions of its window and the product of its counts."""
    for out in itertools.product(*(range(len(first)) for first, _, _ in bounds)):
        spans = [range(first[o], end[o]) for o, (first, end, _) in zip(out, bounds, strict=True)]
        count = math.prod(counts[o] for o, (_, _, counts) in zip(out, bounds, strict=True))
        yield out, list(itertools.product(*spans)), count
