"""Tensors of evenly spaced numbers ("Conversions and choices" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable._registry import handles, rounds_itself
from samebits.portable.kernels import elementwise
from samebits.portable.ops.conversions import to_integers

if TYPE_CHECKING:
    from torch import Tensor


Number = Any  # int, float, or a tensor with one


@handles("aten::arange")
@rounds_itself
def arange(end: Number, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """Compute `aten::arange`."""
    return arange_start_step(0, end, 1, dtype=dtype)


@handles("aten::arange.start")
@rounds_itself
def arange_start(start: Number, end: Number, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """Compute `aten::arange.start`."""
    return arange_start_step(start, end, 1, dtype=dtype)


@handles("aten::arange.start_step")
@rounds_itself
def arange_start_step(
    start: Number, end: Number, step: Number = 1, *, dtype: torch.dtype | None = None, **_: Any
) -> Tensor:
    """Compute `aten::arange.start_step`: start + i * step in float64, then rounded."""
    if step == 0 or not all(map(math.isfinite, (start, end))) or (end - start) * step < 0:
        raise RuntimeError(f"arange from {start} to {end} by {step} has no end")
    if dtype is None:
        floats = any(isinstance(number, float) for number in (start, end, step))
        dtype = torch.get_default_dtype() if floats else torch.int64
    count = math.ceil((float(end) - float(start)) / float(step))
    index = torch.arange(count, dtype=torch.int64)
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
def linspace(start: Number, end: Number, steps: int, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """Compute `aten::linspace`: from either end to the middle, in float64, then rounded."""
    if steps < 0:
        raise RuntimeError(f"linspace of {steps} steps: 0 or more were expected")
    first, last = float(start), float(end)
    step = (last - first) / (steps - 1) if steps > 1 else 0.0
    index = torch.arange(steps, dtype=torch.int64)
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
    start: Number, end: Number, steps: int, base: float = 10, *, dtype: torch.dtype | None = None, **_: Any
) -> Tensor:
    """Compute `aten::logspace`: the powers of `base` to the float64 `linspace`, then rounded."""
    exponents = linspace(start, end, steps, dtype=torch.float64)
    values = elementwise.binary("pow", torch.full_like(exponents, base), exponents)
    dtype = dtype or torch.get_default_dtype()
    return values.to(dtype) if dtype.is_floating_point else to_integers(values, dtype)


@handles("aten::arange.out", "aten::arange.start_out")
@rounds_itself
def out_of_ranges(*args: Any, out: Tensor) -> Tensor:
    """Compute `aten::arange.out` and `aten::arange.start_out`."""
    start, end, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    values = arange_start_step(start, end, step, dtype=out.dtype)
    return out.resize_(values.shape).copy_(values)
