"""Floats to integers, bits of floats ("Conversions and choices" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.portable import to_copy as converted
from samebits.portable._registry import handles, rounds_itself

if TYPE_CHECKING:
    from torch import Tensor


_TWO_63 = float(1 << 63)
_TWO_64 = float(1 << 64)
_INT64 = torch.iinfo(torch.int64)


@handles("aten::_to_copy")
@rounds_itself
def to_copy(self: Tensor, **wanted: Any) -> Tensor:
    """Compute `aten::_to_copy` of floats to an integer dtype."""
    dtype = wanted.pop("dtype")
    return converted(to_integers(self, dtype), **wanted)


@handles("aten::copy")
@rounds_itself
def copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Compute `aten::copy` of floats into integers."""
    copied: Tensor = torch.ops.aten.copy.default(self, to_integers(src, self.dtype), non_blocking)
    return copied


@handles("aten::copy_")
@rounds_itself
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Compute `aten::copy_` of floats into integers."""
    return self.copy_(to_integers(src, self.dtype), non_blocking)


def to_integers(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Return floats as integers: truncated, NaN as 0, clamped to int64, and the low bits of that.

    Args:
        values: any float dtype.
        dtype: an integer dtype.
    """
    inside = (values >= -_TWO_63) & (values < _TWO_63)
    whole = torch.where(inside, values, 0).to(torch.int64)
    whole = torch.where(values < -_TWO_63, _INT64.min, whole)
    if dtype is not torch.uint64:
        return torch.where(values >= _TWO_63, _INT64.max, whole).to(dtype)
    upper = (values >= _TWO_63) & (values < _TWO_64)
    high = torch.where(upper, values - _TWO_63, 0).to(torch.int64) ^ _INT64.min
    whole = torch.where(upper, high, whole)
    return torch.where(values >= _TWO_64, -1, whole).to(dtype)


@handles("aten::view.dtype")
@rounds_itself
def view_dtype(self: Tensor, dtype: torch.dtype) -> Tensor:
    """Compute `aten::view.dtype`: every NaN in the memory becomes the one NaN before its bits are seen."""
    if dtype != self.dtype:
        unify_nans(self)
    seen: Tensor = torch.ops.aten.view.dtype(self, dtype)
    return seen


def unify_nans(tensor: Tensor) -> None:
    """Give every NaN the same bits, in place: it stays the value that it is.

    Args:
        tensor: any dtype; read only unless there is a NaN.
    """
    if not tensor.is_floating_point():
        return
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[dim] > 1:  # elements that share memory
            tensor = tensor.narrow(dim, 0, 1)
    missing = tensor.isnan()
    if missing.any():
        tensor.masked_fill_(missing, float("nan"))


@handles("aten::signbit")
@rounds_itself
def signbit(self: Tensor) -> Tensor:
    """Compute `aten::signbit`: NaN has no sign."""
    return torch.signbit(self) & ~torch.isnan(self)


@handles("aten::copysign.Tensor", "aten::copysign.Scalar")
@rounds_itself
def copysign(self: Tensor, other: Tensor | float) -> Tensor:
    """Compute `aten::copysign`: NaN is positive."""
    if isinstance(other, torch.Tensor):
        return torch.copysign(self, torch.where(torch.isnan(other), 0, other))
    return torch.copysign(self, 0.0 if math.isnan(other) else other)


@handles("aten::frexp.Tensor")
@rounds_itself
def frexp(self: Tensor) -> tuple[Tensor, Tensor]:
    """Compute `aten::frexp.Tensor`: the exponent of inf and NaN is 0."""
    mantissa, exponent = torch.frexp(self)
    return mantissa, torch.where(torch.isfinite(self), exponent, 0)


@handles("aten::index_copy")
@rounds_itself
def index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Compute `aten::index_copy`: of values for the same position the last one stays."""
    out = self.clone()
    if self.dim() == 0:
        return out.copy_(source.reshape(()))
    shape = [1] * self.dim()
    shape[dim] = -1
    return out.scatter_(dim, index.reshape(shape).expand_as(source), source)
