"""Counts of values by bins ("Conversions and choices" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles

if TYPE_CHECKING:
    from torch import Tensor


@handles("aten::histc")
def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Compute `aten::histc`: the number of elements in each of `bins` equal parts of min to max."""
    if bins <= 0:
        raise RuntimeError(f"histc of {bins} bins: 1 or more was expected")
    x = self.reshape(-1)
    low, high = _range(x, float(min), float(max))
    inside = x[(x >= low) & (x <= high)]
    bin_of = ((inside - low) * bins / (high - low)).to(torch.int64).clamp(max=bins - 1)
    return torch.bincount(bin_of, minlength=bins).to(self.dtype)


def _range(x: Tensor, low: float, high: float) -> tuple[Tensor, Tensor]:
    """Return the bounds in the dtype of x; where both are the same, those of its values."""
    if low == high and x.numel():
        least, most = x.min(), x.max()
    else:
        least, most = x.new_full((), low), x.new_full((), high)
    if not (torch.isfinite(least) & torch.isfinite(most)) or least > most:
        raise RuntimeError(f"histc from {least.item()} to {most.item()}: a finite range was expected")
    return (least - 1, most + 1) if least == most else (least, most)
