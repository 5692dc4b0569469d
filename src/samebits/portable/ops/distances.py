"""Distances of all pairs of rows ("Distances" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels.reductions import sum_over
from samebits.portable.ops.sums import power, vector_norm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor


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
    first, second = torch.triu_indices(self.shape[0], self.shape[0], 1)
    return vector_norm(torch.sub(self[first], self[second]), p, -1)


@handles("aten::_pdist_backward")
def pdist_backward(grad: Tensor, self: Tensor, p: float, pdist: Tensor) -> Tensor:
    """Compute `aten::_pdist_backward` as if all pairs had been measured, with 0 for a row and itself."""
    first, second = torch.triu_indices(self.shape[0], self.shape[0], 1)
    full = torch.zeros((2, self.shape[0], self.shape[0]), dtype=self.dtype)
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
