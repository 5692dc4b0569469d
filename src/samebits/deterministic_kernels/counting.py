"""Histograms of floating-point numbers, and counts with weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from samebits.deterministic_kernels.unfit import UnfitError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor


def histogram(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return how many values lie in each of equal bins from `min` to `max`, or over all values.

    A value at the end of the range is in the last bin.

    Raises:
        RuntimeError: if the ends are not finite, or there are no bins.
    """
    if not self.is_floating_point():
        raise UnfitError  # torch's own counts whole numbers
    if bins <= 0:
        raise RuntimeError("bins must be > 0")
    low, high = _ends(self, float(min), float(max))
    first, last = (torch.tensor(end, dtype=self.dtype, device=self.device) for end in (low, high))
    inside = (self >= first) & (self <= last)
    # Tensors, so that the quotient is rounded once.
    at = torch.where(inside, (self - first) * bins / (last - first), 0).to(torch.int64)
    at = torch.where(inside, at.clamp(max=bins - 1), bins)
    return torch.bincount(at.reshape(-1), minlength=bins + 1)[:bins].to(self.dtype)


def _ends(self: Tensor, low: float, high: float) -> tuple[float, float]:
    if low == high and self.numel():
        low, high = (float(end) for end in self.aminmax())
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError("max must be larger than min")
    return low, high


def weighted_counts(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return the sum of the weights of each whole number, in float64 unless they are float32.

    Raises:
        RuntimeError: if the numbers are negative, or the weights are not one for each.
    """
    if weights is None or not self.numel():
        raise UnfitError  # torch's own counts without weights
    if self.dim() != 1 or self.is_floating_point() or bool((self < 0).any()):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights.shape != self.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    dtype = torch.float32 if weights.dtype == torch.float32 else torch.float64
    size = max(int(self.max()) + 1, minlength)
    counts = torch.zeros(size, dtype=dtype, device=self.device)
    return counts.index_add_(0, self.to(torch.int64), weights.to(dtype))


KERNELS: Mapping[str, Callable[..., object]] = {"histc": histogram, "bincount": weighted_counts}
"""By name of the op; its form that writes into a given tensor is computed by the same function."""
