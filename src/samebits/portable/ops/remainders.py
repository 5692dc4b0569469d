"""Remainders of division, exact: torch's vector code is not for large quotients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from samebits.portable._arrays import as_array, as_tensor
from samebits.portable._registry import handles

if TYPE_CHECKING:
    from torch import Tensor


Operand = Any  # a tensor or a number


@handles("aten::fmod.Tensor", "aten::fmod.Scalar")
def fmod(self: Operand, other: Operand) -> Tensor:
    """Compute `aten::fmod`: a - b * (a / b truncated), which is always a float; it has the sign of a."""
    a, b = _promoted(self, other)
    with np.errstate(all="ignore"):
        return as_tensor(np.asarray(np.fmod(as_array(a), as_array(b))))


@handles("aten::remainder.Tensor", "aten::remainder.Scalar", "aten::remainder.Scalar_Tensor")
def remainder(self: Operand, other: Operand) -> Tensor:
    """Compute `aten::remainder`: `fmod`, plus b where it and b differ in sign."""
    _, b = _promoted(self, other)
    rest = fmod(self, other)
    return torch.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


def _promoted(one: Operand, other: Operand) -> tuple[Tensor, Tensor]:
    dtype = torch.result_type(one, other)
    return _as(one, dtype), _as(other, dtype)


def _as(value: Operand, dtype: torch.dtype) -> Tensor:
    return value.to(dtype) if isinstance(value, torch.Tensor) else torch.full((), value, dtype=dtype)
