"""Running sums, products and log-sum-exps ("Running sums")."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels.elementwise import unary
from samebits.portable.kernels.reductions import axes, running

if TYPE_CHECKING:
    from torch import Tensor


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
