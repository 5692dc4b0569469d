"""Reductions, running sums, accumulation into positions and means over windows: functions of tensors.

All are in docs/reference/portable-numerics.md. They take float32 or float64 tensors of any strides; `dims` is
one dimension, several, or None for all. Results are contiguous.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

import torch

from samebits.portable.backends import backend_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    Dims = Sequence[int] | int | None

NAMES = (
    "sum_over",
    "sum_squares_over",
    "sum_products_over",
    "sum_deviations_over",
    "sum_cross_over",
    "sum_magnitudes_over",
    "product_over",
)
"""In the order of native/portable/reduce.h."""


def sum_over(x: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """Return the sum."""
    return _reduce("sum_over", x, dims, keepdim)


def sum_squares_over(x: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """Return the sum of x * x."""
    return _reduce("sum_squares_over", x, dims, keepdim)


def sum_products_over(a: Tensor, b: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """Return the sum of a * b; both have one shape and dtype."""
    return _reduce("sum_products_over", a, dims, keepdim, b=b)


def sum_deviations_over(x: Tensor, mean: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """Return the sum of squares of x - mean.

    Args:
        x: the values.
        mean: as many values as the result has, in its order, with the dtype of x.
        dims: dimensions to sum over.
        keepdim: leave them in the result, with size 1.
    """
    return _reduce("sum_deviations_over", x, dims, keepdim, mean=mean)


def sum_cross_over(x: Tensor, mean: Tensor, b: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """Return the sum of b * (x - mean); `mean` as in `sum_deviations_over`."""
    return _reduce("sum_cross_over", x, dims, keepdim, b=b, mean=mean)


def sum_magnitudes_over(x: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """Return the sum of abs(x)."""
    return _reduce("sum_magnitudes_over", x, dims, keepdim)


def product_over(x: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """Return the product."""
    return _reduce("product_over", x, dims, keepdim)


def mean_over(x: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """Return the sum, divided by the number of values: NaN if there are none."""
    total = _reduce("sum_over", x, dims, keepdim)
    return total.div_(count_over(x, dims))


def count_over(x: Tensor, dims: Dims) -> int:
    """Return the number of values that each result is made of."""
    return math.prod(x.shape[d] for d in axes(x.dim(), dims))


def axes(ndim: int, dims: Dims) -> tuple[int, ...]:
    """Return the dimensions meant, none negative, ascending.

    Raises:
        IndexError: if there is no such dimension.
        RuntimeError: if one is given twice.
    """
    if dims is None:
        return _axes(ndim, ())
    return _axes(ndim, (dims,) if isinstance(dims, int) else tuple(dims))


@functools.lru_cache(512)
def _axes(ndim: int, given: tuple[int, ...]) -> tuple[int, ...]:
    if not given:
        return tuple(range(ndim))
    most = max(ndim, 1)
    for d in given:
        if not -most <= d < most:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-most}, {most - 1}], but got {d})"
            )
    dims = sorted(d % most for d in given)
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"dim {given} appears multiple times in the list of dims")
    return tuple(dims) if ndim else ()


def _reduce(
    name: str, x: Tensor, dims: Dims, keepdim: bool, *, b: Tensor | None = None, mean: Tensor | None = None
) -> Tensor:
    reduced = axes(x.dim(), dims)
    shape = enumerate(x.shape)
    if keepdim:
        sizes = [1 if d in reduced else size for d, size in shape]
    else:
        sizes = [size for d, size in shape if d not in reduced]
    out = x.new_empty(*sizes) if sizes else x.new_empty(())  # faster than with a list
    if x.numel():
        mean = mean if mean is None or mean.is_contiguous() else mean.contiguous()
        backend_of(x).reduce(name, x, reduced, out, b, mean)
        return out
    return out.fill_(name == "product_over")


def running(x: Tensor, dim: int, *, product: bool = False) -> Tensor:
    """Return the sum, or the product, of the values up to each one, along a dimension.

    Args:
        x: float32 or float64, any strides.
        dim: the dimension; 0 or -1 if there is none.
        product: whether products are wanted.
    """
    x = x.contiguous()
    out = torch.empty_like(x)
    if not x.numel():
        return out
    dim = dim % x.dim() if x.dim() else 0
    shape = x.shape or (1,)
    sizes = (math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :]))
    backend_of(x).running(x, sizes, out, product=product)
    return out


KINDS = ("add", "multiply", "largest", "smallest", "set")


def accumulate_(out: Tensor, index: Tensor, src: Tensor, kind: str = "add", *, skip: bool = False) -> Tensor:
    """Let `out[n, index[n, m, c], c]` take `src[n, m, c]`, for ascending m.

    Args:
        out: (batch, rows, columns), float32 or float64, contiguous; changed in place.
        index: (batch, m, columns), int64, rows of `out`, negative ones from the end; any strides, 0 where it
            is shared.
        src: (batch, m, columns), the dtype of `out`, any strides.
        kind: one of `KINDS`.
        skip: whether -1 stands for no row, its source left out.

    Returns:
        `out`.

    Raises:
        IndexError: if an index is no row of `out`.
    """
    if not backend_of(out).accumulate(out, index, src, kind, skip=skip):
        raise IndexError("index out of range in self")
    return out


class Windows(NamedTuple):
    """The windows along one dimension: int64 tensors with one number for each output position.

    They are on the device of what is pooled, where kernels read them.

    Args:
        size: of the input.
        first, end: of a window: its first input position and the one after its last.
        counts: the window's factor of the divisor.
    """

    size: int
    first: Tensor
    end: Tensor
    counts: Tensor


def window_mean(x: Tensor, dims: tuple[Windows, ...], divisor: int) -> Tensor:
    """Return the mean of each window.

    Args:
        x: (planes, the sizes of three dimensions), float32 or float64, contiguous.
        dims: the three dimensions.
        divisor: 0 for the product of the counts.
    """
    shape = (x.shape[0], *(d.first.numel() for d in dims))
    out = torch.empty(shape, dtype=x.dtype, device=x.device)
    if out.numel():
        backend_of(x).window_mean(x, dims, divisor, out)
    return out


def window_spread(grad: Tensor, dims: tuple[Windows, ...], divisor: int) -> Tensor:
    """Return the gradient of the input of `window_mean`; `grad`, of its output, is contiguous."""
    out = torch.empty((grad.shape[0], *(d.size for d in dims)), dtype=grad.dtype, device=grad.device)
    if not grad.numel():
        return out.zero_()
    backend_of(grad).window_spread(grad, dims, divisor, out)
    return out
