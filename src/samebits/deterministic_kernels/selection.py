"""Medians and k-th values with their indices, taken from a stable sort: the first of equal values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor

    Pair = tuple[Tensor, Tensor]


def median(self: Tensor, dim: int, keepdim: bool = False) -> Pair:
    """Return the lower median and its index; NaN and the first one's index where there are NaNs."""
    values, order = _sorted(self, dim)
    n = values.shape[dim]
    missing = _missing(values, dim)
    at = torch.where(missing > 0, n - missing, (n - 1) // 2)
    return _taken((values, order), dim, at, keepdim and self.dim() > 0)


def nanmedian(self: Tensor, dim: int, keepdim: bool = False) -> Pair:
    """Return the lower median of what is not NaN, and its index."""
    values, order = _sorted(self, dim)
    at = ((values.shape[dim] - _missing(values, dim) - 1) // 2).clamp(min=0)
    return _taken((values, order), dim, at, keepdim and self.dim() > 0)


def kth_value(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Pair:
    """Return the k-th smallest value and its index; NaN is larger than all others."""
    values, order = _sorted(self, dim)
    if not 1 <= k <= values.shape[dim]:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    at = torch.full_like(order.narrow(dim, 0, 1), k - 1)
    return _taken((values, order), dim, at, keepdim and self.dim() > 0)


def _sorted(self: Tensor, dim: int) -> Pair:
    if not self.dim():
        values, order = _sorted(self.reshape(1), 0)
        return values, order
    if not self.shape[dim]:
        raise IndexError(f"expected a dimension {dim} of at least one element, and found none")
    values, order = torch.sort(self, dim=dim, stable=True)
    return values, order


def _missing(values: Tensor, dim: int) -> Tensor:
    """Return how many values are NaN, with that dimension of size 1."""
    return torch.isnan(values).sum(dim, keepdim=True)


def _taken(ordered: Pair, dim: int, at: Tensor, keepdim: bool) -> Pair:
    values, order = ordered
    return _shaped(values.gather(dim, at), dim, keepdim), _shaped(order.gather(dim, at), dim, keepdim)


def _shaped(result: Tensor, dim: int, keepdim: bool) -> Tensor:
    return result if keepdim else result.squeeze(dim)


KERNELS: Mapping[str, Callable[..., object]] = {
    "median.dim_values": median,
    "nanmedian.dim_values": nanmedian,
    "kthvalue.values": kth_value,
}
"""By name of the op."""
