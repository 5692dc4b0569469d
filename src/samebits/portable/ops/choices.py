"""Ops that choose among their inputs ("Conversions and choices"): a zero that comes out is +0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable.registry import rounds_itself

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.registry import Handler, Table

Bound = Any  # a number, a tensor or None


def maximum(self: Tensor, other: Tensor) -> Tensor:
    """`aten::maximum`: NaN if either is."""
    return _zero_is_positive(torch.maximum(self, other))


def minimum(self: Tensor, other: Tensor) -> Tensor:
    """`aten::minimum`: NaN if either is."""
    return _zero_is_positive(torch.minimum(self, other))


def fmax(self: Tensor, other: Tensor) -> Tensor:
    """`aten::fmax`: the other one where one is NaN."""
    return _zero_is_positive(torch.fmax(self, other))


def fmin(self: Tensor, other: Tensor) -> Tensor:
    """`aten::fmin`: the other one where one is NaN."""
    return _zero_is_positive(torch.fmin(self, other))


def clamp(self: Tensor, min: Bound = None, max: Bound = None) -> Tensor:
    """`aten::clamp`: the smaller of `max` and the larger of `min` and the element."""
    if max is None and isinstance(min, int | float) and min == 0:
        return relu(self) if _keeps_dtype(self, min) else _zero_is_positive(torch.clamp(self, min=min))
    return _zero_is_positive(torch.clamp(self, min, max))


def clamp_min(self: Tensor, min: Bound) -> Tensor:
    """`aten::clamp_min`."""
    return clamp(self, min)


def clamp_max(self: Tensor, max: Bound) -> Tensor:
    """`aten::clamp_max`."""
    return clamp(self, None, max)


def relu(self: Tensor) -> Tensor:
    """`aten::relu`: +0 where the element is not above 0; NaN stays."""
    return torch.threshold(self, 0, 0)


def hardtanh(self: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    """`aten::hardtanh`."""
    return clamp(self, min_val, max_val)


def clamp_in_place(self: Tensor, min: Bound = None, max: Bound = None) -> Tensor:
    """`aten::clamp_`."""
    if max is None and isinstance(min, int | float) and min == 0 and _keeps_dtype(self, min):
        return relu_in_place(self)
    return _zero_is_positive(torch.clamp_(self, min, max))


def clamp_min_in_place(self: Tensor, min: Bound) -> Tensor:
    """`aten::clamp_min_`."""
    return clamp_in_place(self, min)


def clamp_max_in_place(self: Tensor, max: Bound) -> Tensor:
    """`aten::clamp_max_`."""
    return clamp_in_place(self, None, max)


def relu_in_place(self: Tensor) -> Tensor:
    """`aten::relu_`."""
    return torch.threshold_(self, 0, 0)


def hardtanh_in_place(self: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    """`aten::hardtanh_`."""
    return clamp_in_place(self, min_val, max_val)


def _keeps_dtype(tensor: Tensor, number: float) -> bool:
    return tensor.is_floating_point() and not math.isnan(number)


def _zero_is_positive(fresh: Tensor) -> Tensor:
    """-0 + 0 is +0, and adding 0 changes nothing else."""
    return fresh.add_(0) if fresh.is_floating_point() else fresh


def table() -> Table:
    """The ops of this module."""
    handlers: dict[str, Handler] = {
        "maximum": maximum,
        "minimum": minimum,
        "fmax": fmax,
        "fmin": fmin,
        "clamp": clamp,
        "clamp.Tensor": clamp,
        "clamp_min": clamp_min,
        "clamp_min.Tensor": clamp_min,
        "clamp_max": clamp_max,
        "clamp_max.Tensor": clamp_max,
        "clamp_": clamp_in_place,
        "clamp_.Tensor": clamp_in_place,
        "clamp_min_": clamp_min_in_place,
        "clamp_min_.Tensor": clamp_min_in_place,
        "clamp_max_": clamp_max_in_place,
        "clamp_max_.Tensor": clamp_max_in_place,
        "relu": relu,
        "relu_": relu_in_place,
        "hardtanh": hardtanh,
        "hardtanh_": hardtanh_in_place,
    }
    return {name: rounds_itself(handler) for name, handler in handlers.items()}
