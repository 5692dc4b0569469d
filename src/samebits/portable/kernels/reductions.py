"""Sums and products over dimensions ("Reductions" in docs/portable-numerics.md).

All take float32 or float64 tensors of any strides; `dims` is one dimension, several, or None for all.
Results are contiguous.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import torch

from samebits.portable.arrays import as_array, as_tensor
from samebits.portable.native import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    Dims = Sequence[int] | int | None

_SUM, _SQUARES, _PRODUCTS, _DEVIATIONS, _CROSS, _MAGNITUDES, _PRODUCT = range(7)
_REFERENCES = {
    _SUM: "sum_over",
    _SQUARES: "sum_squares_over",
    _PRODUCTS: "sum_products_over",
    _DEVIATIONS: "sum_deviations_over",
    _CROSS: "sum_cross_over",
    _MAGNITUDES: "sum_magnitudes_over",
    _PRODUCT: "product_over",
}
_MOST_AXES = 64


def sum_over(x: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """The sum."""
    return _reduce(_SUM, x, dims, keepdim)


def sum_squares_over(x: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """The sum of x * x."""
    return _reduce(_SQUARES, x, dims, keepdim)


def sum_products_over(a: Tensor, b: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """The sum of a * b; both have one shape and dtype."""
    return _reduce(_PRODUCTS, a, dims, keepdim, b=b)


def sum_deviations_over(x: Tensor, mean: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """The sum of squares of x - mean.

    Args:
        x: the values.
        mean: as many values as the result has, in its order; its dtype is that of x.
        dims: dimensions to sum over.
        keepdim: leave them in the result, with size 1.
    """
    return _reduce(_DEVIATIONS, x, dims, keepdim, mean=mean)


def sum_cross_over(x: Tensor, mean: Tensor, b: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """The sum of b * (x - mean); `mean` as in `sum_deviations_over`."""
    return _reduce(_CROSS, x, dims, keepdim, b=b, mean=mean)


def sum_magnitudes_over(x: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """The sum of abs(x)."""
    return _reduce(_MAGNITUDES, x, dims, keepdim)


def product_over(x: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """The product."""
    return _reduce(_PRODUCT, x, dims, keepdim)


def mean_over(x: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    """The sum, divided by how many values there are: NaN if none."""
    total = _reduce(_SUM, x, dims, keepdim)
    return total.div_(count_over(x, dims))


def count_over(x: Tensor, dims: Dims) -> int:
    """How many values each result is made of."""
    return math.prod(x.shape[d] for d in axes(x.dim(), dims))


def axes(ndim: int, dims: Dims) -> tuple[int, ...]:
    """The dimensions meant, none negative, ascending.

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
    found = sorted(d % most for d in given)
    if len(set(found)) < len(found):
        raise RuntimeError(f"dim {given} appears multiple times in the list of dims")
    return tuple(found) if ndim else ()


def _reduce(
    kind: int, x: Tensor, dims: Dims, keepdim: bool, *, b: Tensor | None = None, mean: Tensor | None = None
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
        _call(kind, x, reduced, out, b, mean)
        return out
    return out.fill_(kind == _PRODUCT)


def _call(
    kind: int, x: Tensor, reduced: tuple[int, ...], out: Tensor, b: Tensor | None, mean: Tensor | None
) -> None:
    kernels = load()
    if kernels is None or x.dim() > _MOST_AXES:
        out.copy_(_by_reference(kind, x, reduced, b, mean).view(out.shape))
        return
    wide = x.dtype is torch.float64
    others = (0 if b is None else b.data_ptr(), 0 if mean is None else mean.data_ptr())
    strides = x.stride() if b is None else x.stride() + b.stride()
    words = (kind, wide, x.data_ptr(), *others, out.data_ptr(), x.dim(), _bits(reduced), *x.shape, *strides)
    kernels.call("reduce", words)


@functools.lru_cache(512)
def _bits(reduced: tuple[int, ...]) -> int:
    return sum(1 << d for d in reduced)


def _by_reference(
    kind: int, x: Tensor, reduced: tuple[int, ...], b: Tensor | None, mean: Tensor | None
) -> Tensor:
    from samebits.portable.reference import reductions as reference

    operands = [as_array(x)]
    if mean is not None:
        kept = [size for d, size in enumerate(x.shape) if d not in reduced]
        operands.append(as_array(mean.reshape(kept)))
    if b is not None:
        operands.append(as_array(b))
    return as_tensor(getattr(reference, _REFERENCES[kind])(*operands, reduced)[...])
