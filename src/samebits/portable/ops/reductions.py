"""Sums, means, norms and distances; cumulative sums and products."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels import elementwise
from samebits.portable.kernels.elementwise import sqrt, unary
from samebits.portable.kernels.reductions import (
    axes,
    count_over,
    mean_over,
    product_over,
    running,
    sum_deviations_over,
    sum_magnitudes_over,
    sum_over,
    sum_squares_over,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
    exponents = torch.full((), exponent, dtype=x.dtype, device=x.device).expand_as(x)
    return elementwise.binary("pow", x, exponents)


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


@handles("aten::cumsum")
def cumsum(self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Compute `aten::cumsum`."""
    axes(self.dim(), dim)
    self = self if dtype is None else self.to(dtype)
    return running(self, dim) if self.is_floating_point() else torch.cumsum(self, dim, dtype=dtype)


@handles("aten::cumprod")
def cumprod(self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Compute `aten::cumprod`."""
    axes(self.dim(), dim)
    self = self if dtype is None else self.to(dtype)
    return (
        running(self, dim, product=True)
        if self.is_floating_point()
        else torch.cumprod(self, dim, dtype=dtype)
    )


@handles("aten::logcumsumexp")
def logcumsumexp(self: Tensor, dim: int) -> Tensor:
    """Compute `aten::logcumsumexp`: a chain of log(exp(a) + exp(b)) in binary64."""
    axes(self.dim(), dim)
    if not self.dim() or not self.numel():
        return self.clone()
    lines = self.to(torch.float64).movedim(dim, 0)
    chain = lines[0]
    sums = [chain]
    for values in lines[1:]:
        chain = _log_add(chain, values)
        sums.append(chain)
    return torch.stack(sums, dim).to(self.dtype)


def _log_add(a: Tensor, b: Tensor) -> Tensor:
    """Return m + log1p(exp(l - m)) for m, the greater, and l; m where both are the same infinity."""
    most, least = torch.maximum(a, b), torch.minimum(a, b)
    both = (most == least) & (most.abs() == math.inf)
    return torch.where(both, most, most + unary("log1p", unary("exp", least - most)))


_MOST = 1 << 22  # differences that are made at a time; their number does not change a value


@handles("aten::_cdist_forward")
def cdist_forward(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None = None) -> Tensor:
    """Compute `aten::_cdist_forward`: the norm of the difference of each row of `x1` and each row of `x2`."""
    x1, x2 = _same_batches(x1, x2)
    parts = [vector_norm(_less(x1[..., rows, :], x2), p, -1) for rows in _rows(x1, x2)]
    return torch.cat(parts, -2) if parts else x1.new_empty((*x1.shape[:-1], x2.shape[-2]))


@handles("aten::_euclidean_dist")
def euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    """Compute `aten::_euclidean_dist`."""
    return cdist_forward(x1, x2, 2.0)


@handles("aten::_cdist_backward")
def cdist_backward(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    """Compute `aten::_cdist_backward`: the gradient of `x1`."""
    x1, x2 = _same_batches(x1, x2)
    parts = []
    for rows in _rows(x1, x2):
        grads, lengths = grad[..., rows, :].unsqueeze(-1), cdist[..., rows, :].unsqueeze(-1)
        parts.append(sum_over(_slopes(_less(x1[..., rows, :], x2), grads, lengths, p), -2))
    return torch.cat(parts, -2) if parts else torch.zeros_like(x1)


@handles("aten::_pdist_forward")
def pdist_forward(self: Tensor, p: float = 2.0) -> Tensor:
    """Compute `aten::_pdist_forward`: rows i < j, in the order of i, then j."""
    first, second = torch.triu_indices(self.shape[0], self.shape[0], 1, device=self.device)
    return vector_norm(torch.sub(self[first], self[second]), p, -1)


@handles("aten::_pdist_backward")
def pdist_backward(grad: Tensor, self: Tensor, p: float, pdist: Tensor) -> Tensor:
    """Compute `aten::_pdist_backward` as if all pairs had been measured, with 0 for a row and itself."""
    first, second = torch.triu_indices(self.shape[0], self.shape[0], 1, device=self.device)
    full = torch.zeros((2, self.shape[0], self.shape[0]), dtype=self.dtype, device=self.device)
    for square, values in zip(full, (grad, pdist), strict=True):
        square[first, second] = values
        square[second, first] = values
    return cdist_backward(full[0], self, self, p, full[1])


def _same_batches(x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    batches = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])  # type: ignore[no-untyped-call]
    return x1.expand(batches + x1.shape[-2:]), x2.expand(batches + x2.shape[-2:])


def _rows(x1: Tensor, x2: Tensor) -> Iterator[slice]:
    step = max(1, _MOST // max(1, math.prod(x1.shape[:-2]) * x2.shape[-2] * x2.shape[-1]))
    return (slice(start, start + step) for start in range(0, x1.shape[-2], step))


def _less(x1: Tensor, x2: Tensor) -> Tensor:
    return torch.sub(x1.unsqueeze(-2), x2.unsqueeze(-3))


def _slopes(difference: Tensor, grad: Tensor, length: Tensor, p: float) -> Tensor:
    """Return the gradient times the derivative of the norm by each component; 0 where there is none."""
    sign = torch.sign(difference)
    if p == 0:
        return torch.zeros_like(difference)
    if p == 1:
        return torch.mul(grad, sign)
    if math.isinf(p):
        return torch.where(torch.eq(difference.abs(), length), torch.mul(grad, sign), 0.0)
    if p == 2:
        slopes = torch.div(torch.mul(grad, difference), length)
    else:
        powers = power(torch.div(difference.abs(), length), p - 1)
        slopes = torch.mul(torch.mul(grad, sign), powers)
    return torch.where(torch.eq(length, 0) | torch.eq(difference, 0), 0.0, slopes)
