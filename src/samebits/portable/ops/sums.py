"""Sums, means, variances, products and norms of vectors ("Reductions")."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels import elementwise
from samebits.portable.kernels.elementwise import sqrt
from samebits.portable.kernels.reductions import (
    axes,
    count_over,
    mean_over,
    product_over,
    sum_deviations_over,
    sum_magnitudes_over,
    sum_over,
    sum_squares_over,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    Dims = Sequence[int] | int | None


@handles("aten::sum")
def sum_all(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """Compute `aten::sum`."""
    return sum_dims(self, None, dtype=dtype)


@handles("aten::sum.dim_IntList")
def sum_dims(self: Tensor, dim: Dims, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """Compute `aten::sum.dim_IntList`."""
    self = _converted(self, dtype)
    if not self.is_floating_point():
        return torch.sum(self, axes(self.dim(), dim), keepdim, dtype=dtype)
    return sum_over(self, dim, keepdim)


@handles("aten::mean")
def mean_all(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """Compute `aten::mean`."""
    return mean_dims(self, None, dtype=dtype)


@handles("aten::mean.dim")
def mean_dims(self: Tensor, dim: Dims, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """Compute `aten::mean.dim`."""
    self = _converted(self, dtype)
    if not self.is_floating_point():
        raise RuntimeError(f"mean(): input dtype must be a floating point dtype, got {self.dtype}")
    return mean_over(self, dim, keepdim)


@handles("aten::nansum")
def nansum(
    self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """Compute `aten::nansum`: NaNs count as +0."""
    if self.is_floating_point():
        self = torch.where(self.isnan(), 0, self)
    return sum_dims(self, dim, keepdim, dtype=dtype)


@handles("aten::prod")
def prod_all(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """Compute `aten::prod`."""
    self = _converted(self, dtype)
    return product_over(self, None) if self.is_floating_point() else torch.prod(self, dtype=dtype)


@handles("aten::prod.dim_int")
def prod_dim(self: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """Compute `aten::prod.dim_int`."""
    self = _converted(self, dtype)
    return (
        product_over(self, dim, keepdim)
        if self.is_floating_point()
        else torch.prod(self, dim, keepdim, dtype=dtype)
    )


@handles("aten::var_mean.correction")
def var_mean(
    self: Tensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """Compute `aten::var_mean.correction` in float64, as torch does."""
    variance, mean = _moments(self, dim, correction, keepdim)
    return variance.to(self.dtype), mean.to(self.dtype)


@handles("aten::var.correction")
def var(self: Tensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False) -> Tensor:
    """Compute `aten::var.correction`."""
    return _moments(self, dim, correction, keepdim)[0].to(self.dtype)


@handles("aten::std.correction")
def std(self: Tensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False) -> Tensor:
    """Compute `aten::std.correction`."""
    return sqrt(_moments(self, dim, correction, keepdim)[0]).to(self.dtype)


@handles("aten::std_mean.correction")
def std_mean(
    self: Tensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """Compute `aten::std_mean.correction`."""
    variance, mean = _moments(self, dim, correction, keepdim)
    return sqrt(variance).to(self.dtype), mean.to(self.dtype)


def _moments(x: Tensor, dim: Dims, correction: float | None, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Return variance and mean in float64: squares of x - mean summed, divided by n - correction (or 0)."""
    if not x.is_floating_point():
        raise RuntimeError("std and var only support floating point and complex dtypes")
    wide = x.to(torch.float64)
    mean = mean_over(wide, dim, keepdim)
    total = sum_deviations_over(wide, mean, dim, keepdim)
    degrees = count_over(x, dim) - (1 if correction is None else correction)
    return total.div_(max(degrees, 0)), mean


@handles("aten::linalg_vector_norm")
def vector_norm(
    self: Tensor,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Compute `aten::linalg_vector_norm`."""
    self = _converted(self, dtype)
    if not self.is_floating_point():
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {self.dtype}"
        )
    special = _NORMS.get(ord)
    if special is not None:
        return special(self, dim, keepdim)
    powers = sum_over(power(self.abs(), ord), dim, keepdim)
    return power(powers, 1 / ord)


@handles("aten::norm.Scalar")
def norm_all(self: Tensor, p: float = 2) -> Tensor:
    """Compute `aten::norm.Scalar`."""
    return vector_norm(self, 2 if p is None else p)


@handles("aten::norm.ScalarOpt_dtype")
def norm_dtype(self: Tensor, p: float | None, *, dtype: torch.dtype) -> Tensor:
    """Compute `aten::norm.ScalarOpt_dtype`."""
    return vector_norm(self, 2 if p is None else p, dtype=dtype)


@handles("aten::norm.ScalarOpt_dim")
def norm_dims(self: Tensor, p: float | None, dim: Dims, keepdim: bool = False) -> Tensor:
    """Compute `aten::norm.ScalarOpt_dim`."""
    return vector_norm(self, 2 if p is None else p, dim, keepdim)


@handles("aten::norm.ScalarOpt_dim_dtype")
def norm_dims_dtype(
    self: Tensor, p: float | None, dim: Dims, keepdim: bool = False, *, dtype: torch.dtype
) -> Tensor:
    """Compute `aten::norm.ScalarOpt_dim_dtype`."""
    return vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)


@handles("aten::_foreach_norm.Scalar")
def foreach_norm(self: Sequence[Tensor], ord: float = 2, dtype: torch.dtype | None = None) -> list[Tensor]:
    """Compute `aten::_foreach_norm.Scalar`."""
    return [vector_norm(tensor, ord, dtype=dtype) for tensor in self]


@handles("aten::dist")
def dist(self: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Compute `aten::dist`: the norm of the difference."""
    return vector_norm(self - other, p)


@handles("aten::renorm")
def renorm(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Compute `aten::renorm`: slices whose norm is above `maxnorm` times maxnorm / (norm + 1e-7)."""
    others = [d for d in range(self.dim()) if d != dim % self.dim()]
    norms = vector_norm(self, p, others, keepdim=True)
    factor = (norms + 1e-7).reciprocal_().mul_(maxnorm)
    return self * torch.where(norms > maxnorm, factor, 1.0)


@handles("aten::trace")
def trace(self: Tensor) -> Tensor:
    """Compute `aten::trace`."""
    return sum_dims(self.diagonal(), None)


def _converted(x: Tensor, dtype: torch.dtype | None) -> Tensor:
    return x if dtype is None or dtype == x.dtype else x.to(dtype)


def power(x: Tensor, exponent: float) -> Tensor:
    """Return every element to the same power."""
    return elementwise.binary("pow", x, torch.full((), exponent, dtype=x.dtype).expand_as(x))


def _euclidean(x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    return sqrt(sum_squares_over(x, dim, keepdim))


def _largest(x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    return torch.amax(x.abs(), axes(x.dim(), dim), keepdim) + 0


def _smallest(x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    return torch.amin(x.abs(), axes(x.dim(), dim), keepdim) + 0


def _nonzeros(x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    return torch.sum(x != 0, axes(x.dim(), dim), keepdim).to(x.dtype)


_NORMS: dict[float, Callable[[Tensor, Dims, bool], Tensor]] = {
    0: _nonzeros,
    1: sum_magnitudes_over,
    2: _euclidean,
    math.inf: _largest,
    -math.inf: _smallest,
}
