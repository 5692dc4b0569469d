"""Conversions between dtypes, ranges of numbers, and counts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.portable import to_copy as converted
from samebits.portable._registry import handles, rounds_itself
from samebits.portable.kernels import elementwise

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


Number = Any  # int, float, or a tensor with one
Device = torch.device | None


@handles("aten::arange")
@rounds_itself
def arange(end: Number, **options: Any) -> Tensor:
    """Compute `aten::arange`."""
    return arange_start_step(0, end, 1, **options)


@handles("aten::arange.start")
@rounds_itself
def arange_start(start: Number, end: Number, **options: Any) -> Tensor:
    """Compute `aten::arange.start`."""
    return arange_start_step(start, end, 1, **options)


@handles("aten::arange.start_step")
@rounds_itself
def arange_start_step(
    start: Number,
    end: Number,
    step: Number = 1,
    *,
    dtype: torch.dtype | None = None,
    device: Device = None,
    **_: Any,
) -> Tensor:
    """Compute `aten::arange.start_step`: start + i * step in float64, then rounded."""
    if step == 0 or not all(map(math.isfinite, (start, end))) or (end - start) * step < 0:
        raise RuntimeError(f"arange from {start} to {end} by {step} has no end")
    if dtype is None:
        floats = any(isinstance(number, float) for number in (start, end, step))
        dtype = torch.get_default_dtype() if floats else torch.int64
    count = math.ceil((float(end) - float(start)) / float(step))
    index = torch.arange(count, dtype=torch.int64, device=device)
    if not dtype.is_floating_point:
        return (index * int(step) + int(start)).to(dtype)
    return (index.to(torch.float64) * float(step) + float(start)).to(dtype)


@handles(
    "aten::linspace",
    "aten::linspace.Tensor_Tensor",
    "aten::linspace.Tensor_Scalar",
    "aten::linspace.Scalar_Tensor",
)
@rounds_itself
def linspace(
    start: Number,
    end: Number,
    steps: int,
    *,
    dtype: torch.dtype | None = None,
    device: Device = None,
    **_: Any,
) -> Tensor:
    """Compute `aten::linspace`: from either end to the middle, in float64, then rounded."""
    if steps < 0:
        raise RuntimeError(f"linspace of {steps} steps: 0 or more were expected")
    first, last = float(start), float(end)
    step = (last - first) / (steps - 1) if steps > 1 else 0.0
    index = torch.arange(steps, dtype=torch.int64, device=device)
    up = index.to(torch.float64) * step + first
    down = last - (steps - 1 - index).to(torch.float64) * step
    values = torch.where(index < steps // 2, up, down) if steps > 1 else up
    dtype = dtype or torch.get_default_dtype()
    return values.to(dtype) if dtype.is_floating_point else to_integers(values, dtype)


@handles(
    "aten::logspace",
    "aten::logspace.Tensor_Tensor",
    "aten::logspace.Tensor_Scalar",
    "aten::logspace.Scalar_Tensor",
)
@rounds_itself
def logspace(
    start: Number,
    end: Number,
    steps: int,
    base: float = 10,
    *,
    dtype: torch.dtype | None = None,
    **options: Any,
) -> Tensor:
    """Compute `aten::logspace`: the powers of `base` to the float64 `linspace`, then rounded."""
    exponents = linspace(start, end, steps, dtype=torch.float64, **options)
    values = elementwise.binary("pow", torch.full_like(exponents, base), exponents)
    dtype = dtype or torch.get_default_dtype()
    return values.to(dtype) if dtype.is_floating_point else to_integers(values, dtype)


@handles("aten::arange.out", "aten::arange.start_out")
@rounds_itself
def out_of_ranges(*args: Any, out: Tensor) -> Tensor:
    """Compute `aten::arange.out` and `aten::arange.start_out`."""
    start, end, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    values = arange_start_step(start, end, step, dtype=out.dtype, device=out.device)
    return out.resize_(values.shape).copy_(values)


@handles("aten::histc")
def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Compute `aten::histc`: the number of elements in each of `bins` equal parts of min to max."""
    if bins <= 0:
        raise RuntimeError(f"histc of {bins} bins: 1 or more was expected")
    x = self.reshape(-1) if self.is_floating_point() else self.reshape(-1).to(torch.int64)
    low, high = _range(x, float(min), float(max))
    offset = (x[(x >= low) & (x <= high)] - low) * bins
    quotient = offset / (high - low) if x.is_floating_point() else offset // (high - low)
    bin_of = quotient.to(torch.int64).clamp(max=bins - 1)
    return torch.bincount(bin_of, minlength=bins).to(self.dtype)


def _range(x: Tensor, low: float, high: float) -> tuple[Tensor, Tensor]:
    """Return the bounds in the dtype of x; where both are the same, the least and greatest value of x."""
    if low == high and x.numel():
        least, most = x.min(), x.max()
    else:
        least, most = x.new_full((), low), x.new_full((), high)
    if not (torch.isfinite(least) & torch.isfinite(most)) or least > most:
        raise RuntimeError(f"histc from {least.item()} to {most.item()}: a finite range was expected")
    return (least - 1, most + 1) if least == most else (least, most)
