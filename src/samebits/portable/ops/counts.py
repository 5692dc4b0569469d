"""Counts of values by bins ("Conversions and choices" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles

if TYPE_CHECKING:
    from torch import Tensor


@handles("aten::histc")
def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """`aten::histc`: how many elements are in each of `bins` equal parts of min to max."""
    if bins <= 0:
        raise RuntimeError(f"histc of {bins} bins: 1 or more was expected")
    x = self.reshape(-1)
    low, high = _range(x, float(min), float(max))
    inside = x[(x >= low) & (x <= high)]
    place = ((inside - low) * bins / (high - low)).to(torch.int64).clamp(max=bins - 1)
    return torch.bincount(place, minlength=bins).to(self.dtype)


def _range(x: Tensor, low: float, high: float) -> tuple[Tensor, Tensor]:
    """The bounds in the dtype of x; those of its values where both are the same."""
    if low == high and x.numel():
        least, most = x.min(), x.max()
    else:
        least, most = x.new_full((), low), x.new_full((), high)
    if not (torch.isfinite(least) & torch.isfinite(most)) or least > most:
        raise RuntimeError(f"histc from {least.item()} to {most.item()}: a finite range was expected")
    return (least - 1, most + 1) if least == most else (least, most)
