"""Ops that choose among their inputs ("Conversions and choices"); a zero in the result is +0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable._registry import handles, rounds_itself

if TYPE_CHECKING:
    from torch import Tensor


Bound = Any  # a number, a tensor or None


@handles("aten::maximum")
@rounds_itself
def maximum(self: Tensor, other: Tensor) -> Tensor:
    """Compute `aten::maximum`: NaN if either input is."""
    return _zero_is_positive(torch.maximum(self, other))


@handles("aten::minimum")
@rounds_itself
def minimum(self: Tensor, other: Tensor) -> Tensor:
    """Compute `aten::minimum`: NaN if either input is."""
    return _zero_is_positive(torch.minimum(self, other))


@handles("aten::fmax")
@rounds_itself
def fmax(self: Tensor, other: Tensor) -> Tensor:
    """Compute `aten::fmax`: where one input is NaN, the other one."""
    return _zero_is_positive(torch.fmax(self, other))


@handles("aten::fmin")
@rounds_itself
def fmin(self: Tensor, other: Tensor) -> Tensor:
    """Compute `aten::fmin`: where one input is NaN, the other one."""
    return _zero_is_positive(torch.fmin(self, other))


@handles("aten::clamp", "aten::clamp.Tensor")
@rounds_itself
def clamp(self: Tensor, min: Bound = None, max: Bound = None) -> Tensor:
    """Compute `aten::clamp`: the smaller of `max` and the larger of `min` and the element."""
    if max is None and isinstance(min, int | float) and min == 0:
        return relu(self) if _keeps_dtype(self, min) else _zero_is_positive(torch.clamp(self, min=min))
    return _zero_is_positive(torch.clamp(self, min, max))


@handles("aten::clamp_min", "aten::clamp_min.Tensor")
@rounds_itself
def clamp_min(self: Tensor, min: Bound) -> Tensor:
    """Compute `aten::clamp_min`."""
    return clamp(self, min)


@handles("aten::clamp_max", "aten::clamp_max.Tensor")
@rounds_itself
def clamp_max(self: Tensor, max: Bound) -> Tensor:
    """Compute `aten::clamp_max`."""
    return clamp(self, None, max)


@handles("aten::relu")
@rounds_itself
def relu(self: Tensor) -> Tensor:
    """Compute `aten::relu`: +0 where the element is not above 0; NaN stays NaN."""
    return torch.threshold(self, 0, 0)


@handles("aten::hardtanh")
@rounds_itself
def hardtanh(self: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    """Compute `aten::hardtanh`."""
    return clamp(self, min_val, max_val)


@handles("aten::clamp_", "aten::clamp_.Tensor")
@rounds_itself
def clamp_in_place(self: Tensor, min: Bound = None, max: Bound = None) -> Tensor:
    """Compute `aten::clamp_`."""
    if max is None and isinstance(min, int | float) and min == 0 and _keeps_dtype(self, min):
        return relu_in_place(self)
    return _zero_is_positive(torch.clamp_(self, min, max))


@handles("aten::clamp_min_", "aten::clamp_min_.Tensor")
@rounds_itself
def clamp_min_in_place(self: Tensor, min: Bound) -> Tensor:
    """Compute `aten::clamp_min_`."""
    return clamp_in_place(self, min)


@handles("aten::clamp_max_", "aten::clamp_max_.Tensor")
@rounds_itself
def clamp_max_in_place(self: Tensor, max: Bound) -> Tensor:
    """Compute `aten::clamp_max_`."""
    return clamp_in_place(self, None, max)


@handles("aten::relu_")
@rounds_itself
def relu_in_place(self: Tensor) -> Tensor:
    """Compute `aten::relu_`."""
    return torch.threshold_(self, 0, 0)


@handles("aten::hardtanh_")
@rounds_itself
def hardtanh_in_place(self: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    """Compute `aten::hardtanh_`."""
    return clamp_in_place(self, min_val, max_val)


def _keeps_dtype(tensor: Tensor, number: float) -> bool:
    return tensor.is_floating_point() and not math.isnan(number)


def _zero_is_positive(fresh: Tensor) -> Tensor:
    """Make every -0 a +0 in place; adding 0 changes nothing else."""
    return fresh.add_(0) if fresh.is_floating_point() else fresh
