"""Arithmetic: sums, products, quotients, remainders and roots of elements."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from samebits.portable._registry import handles
from samebits.portable._tensors import as_array, as_tensor, device_of
from samebits.portable.kernels import elementwise
from samebits.portable.kernels.activations import pointwise, pointwise_

if TYPE_CHECKING:
    from torch import Tensor


@handles("aten::add.Tensor")
def add(self: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """Compute `aten::add` with an `alpha`: other * alpha, then the sum."""
    dtype = torch.result_type(self, other)
    if _is_exact(dtype, alpha):
        return torch.add(self, other, alpha=alpha)
    return pointwise("add_scaled", *_both(self, other, dtype), params=(alpha,))


@handles("aten::add.Scalar")
def add_scalar(self: Tensor, other: float, alpha: float = 1) -> Tensor:
    """Compute `aten::add.Scalar`."""
    return add(self, other, alpha=alpha)


@handles("aten::sub.Tensor")
def sub(self: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """Compute `aten::sub` with an `alpha`."""
    dtype = torch.result_type(self, other)
    if _is_exact(dtype, alpha):
        return torch.sub(self, other, alpha=alpha)
    return pointwise("add_scaled", *_both(self, other, dtype), params=(-alpha,))


@handles("aten::sub.Scalar")
def sub_scalar(self: Tensor, other: float, alpha: float = 1) -> Tensor:
    """Compute `aten::sub.Scalar`."""
    return sub(self, other, alpha=alpha)


@handles("aten::rsub.Tensor")
def rsub(self: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """Compute `aten::rsub`: other - self * alpha."""
    dtype = torch.result_type(self, other)
    if _is_exact(dtype, alpha):
        return torch.rsub(self, other, alpha=alpha)
    return pointwise("add_scaled", *reversed(_both(self, other, dtype)), params=(-alpha,))


@handles("aten::rsub.Scalar")
def rsub_scalar(self: Tensor, other: float, alpha: float = 1) -> Tensor:
    """Compute `aten::rsub.Scalar`."""
    return rsub(self, other, alpha=alpha)


@handles("aten::lerp.Tensor", "aten::lerp.Scalar")
def lerp(self: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    """Compute `aten::lerp`, from the nearer end."""
    return pointwise("lerp", self, end, _as_tensor(weight, self.dtype, self.device))


@handles("aten::addcmul")
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Compute `aten::addcmul`; of integers, for which torch takes the whole part of `value`, it is exact."""
    inputs = _alike(self, tensor1, tensor2)
    if not inputs[0].is_floating_point():
        return torch.addcmul(*inputs, value=int(value))
    return pointwise("addcmul", *inputs, params=(value,))


@handles("aten::addcdiv")
def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Compute `aten::addcdiv`."""
    inputs = _alike(self, tensor1, tensor2)
    if not inputs[0].is_floating_point():
        raise RuntimeError("addcdiv of integers: float tensors were expected; divide with `torch.div`")
    return pointwise("addcdiv", *inputs, params=(value,))


@handles("aten::add_.Tensor")
def add_in_place(self: Tensor, other: Tensor, *, alpha: float = 1) -> Tensor:
    """Compute `aten::add_` with an `alpha`."""
    if _is_exact(self.dtype, alpha):
        return self.copy_(add(self, other, alpha=alpha))
    return pointwise_("add_scaled", self, other, params=(alpha,))


@handles("aten::sub_.Tensor")
def sub_in_place(self: Tensor, other: Tensor, *, alpha: float = 1) -> Tensor:
    """Compute `aten::sub_` with an `alpha`."""
    if _is_exact(self.dtype, alpha):
        return self.copy_(sub(self, other, alpha=alpha))
    return pointwise_("add_scaled", self, other, params=(-alpha,))


@handles("aten::lerp_.Tensor", "aten::lerp_.Scalar")
def lerp_in_place(self: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    """Compute `aten::lerp_`."""
    return pointwise_("lerp", self, end, _as_tensor(weight, self.dtype, self.device))


@handles("aten::addcmul_")
def addcmul_in_place(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Compute `aten::addcmul_`."""
    if not self.is_floating_point():
        return self.copy_(addcmul(self, tensor1, tensor2, value=value))
    return pointwise_("addcmul", self, *_alike(tensor1, tensor2), params=(value,))


@handles("aten::addcdiv_")
def addcdiv_in_place(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Compute `aten::addcdiv_`."""
    if not self.is_floating_point():
        return self.copy_(addcdiv(self, tensor1, tensor2, value=value))
    return pointwise_("addcdiv", self, *_alike(tensor1, tensor2), params=(value,))


def _is_exact(dtype: torch.dtype, alpha: float) -> bool:
    """Tell whether torch's own sum is exact: of integers, or where nothing is scaled."""
    return not dtype.is_floating_point or (alpha == 1 and not isinstance(alpha, bool))


def _both(self: Tensor, other: Tensor | float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    device = device_of(self, other)
    return self.to(device, dtype), _as_tensor(other, dtype, device)


def _as_tensor(value: Tensor | float, dtype: torch.dtype, device: torch.device) -> Tensor:
    if isinstance(value, torch.Tensor):
        return value.to(device, dtype)
    if type(value) is float:  # an integer would be rounded in another way
        return torch.scalar_tensor(value, dtype=dtype, device=device)
    return torch.tensor(value, dtype=dtype, device=device)


def _alike(*tensors: Tensor) -> tuple[Tensor, ...]:
    first = tensors[0].dtype
    if all(tensor.dtype == first for tensor in tensors):
        return tensors
    dtype = functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors if tensor.dim()), first)
    return tuple(tensor.to(dtype) for tensor in tensors)


@handles("aten::sqrt")
def sqrt(self: Tensor) -> Tensor:
    """Compute `aten::sqrt`; integers become the default dtype, as in torch."""
    return elementwise.sqrt(self if self.is_floating_point() else self.to(torch.get_default_dtype()))


@handles("aten::sqrt_")
def sqrt_in_place(self: Tensor) -> Tensor:
    """Compute `aten::sqrt_`."""
    return elementwise.sqrt_(self)


Operand = Any  # a tensor or a number


@handles("aten::fmod.Tensor", "aten::fmod.Scalar")
def fmod(self: Operand, other: Operand) -> Tensor:
    """Compute `aten::fmod`: a - b * (a / b truncated), which is always a float; it has the sign of a."""
    a, b = _promoted(self, other)
    with np.errstate(all="ignore"):
        return as_tensor(np.fmod(as_array(a.cpu()), as_array(b.cpu()))).to(a.device)


@handles("aten::remainder.Tensor", "aten::remainder.Scalar", "aten::remainder.Scalar_Tensor")
def remainder(self: Operand, other: Operand) -> Tensor:
    """Compute `aten::remainder`: `fmod`, plus b where it and b differ in sign."""
    _, b = _promoted(self, other)
    rest = fmod(self, other)
    return torch.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


def _promoted(one: Operand, other: Operand) -> tuple[Tensor, Tensor]:
    dtype, device = torch.result_type(one, other), device_of(one, other)
    return _as(one, dtype, device), _as(other, dtype, device)


def _as(value: Operand, dtype: torch.dtype, device: torch.device) -> Tensor:
    if isinstance(value, torch.Tensor):
        return value.to(device, dtype)
    return torch.full((), value, dtype=dtype, device=device)
