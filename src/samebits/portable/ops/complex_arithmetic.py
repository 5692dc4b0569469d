"""Arithmetic of complex numbers: real operations on their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.portable import to_copy as converted
from samebits.portable._refusals import refuse_use
from samebits.portable._registry import handles, handles_complex, rounds_itself
from samebits.portable._tensors import LOW_PRECISION, device_of
from samebits.portable.kernels.complex_numbers import (
    divided,
    exponential,
    joined,
    magnitude,
    of_pairs,
    parts,
    power,
    product,
    sign,
)
from samebits.portable.kernels.elementwise import binary, unary
from samebits.portable.ops.conversions import to_integers, unify_nans

if TYPE_CHECKING:
    from torch import Tensor

SECTION = "Complex numbers"
Operand = Any  # a tensor or a number


def _operand(value: Operand, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return an operand in a complex dtype, or in that of its parts if it is real."""
    if isinstance(value, torch.Tensor):
        return value.to(device, dtype if value.is_complex() else dtype.to_real())
    of_value = dtype if isinstance(value, complex) else dtype.to_real()
    return torch.tensor(value, dtype=of_value, device=device)


def _operands(one: Operand, other: Operand, op: str) -> tuple[Tensor, Tensor]:
    dtype = torch.result_type(one, other)
    if dtype is torch.complex32:
        raise refuse_use(op, "of complex32 tensors")
    device = device_of(one, other)
    return _operand(one, dtype, device), _operand(other, dtype, device)


def _whole(value: Tensor) -> Tensor:
    """Return a complex tensor; a real one gets imaginary parts of +0."""
    return value if value.is_complex() else value.to(value.dtype.to_complex())


@handles_complex("aten::add.Tensor")
def add(self: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """Compute `aten::add`: other * alpha, then the sum."""
    one, two = _operands(self, _scaled(other, alpha), "add")
    return of_pairs(torch.view_as_real(_whole(one)) + torch.view_as_real(_whole(two)))


@handles_complex("aten::sub.Tensor")
def sub(self: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """Compute `aten::sub`: other * alpha, then the difference."""
    one, two = _operands(self, _scaled(other, alpha), "sub")
    return of_pairs(torch.view_as_real(_whole(one)) - torch.view_as_real(_whole(two)))


def _scaled(value: Operand, alpha: Operand) -> Operand:
    if alpha == 1:
        return value
    return mul(value, alpha) if isinstance(value, torch.Tensor) else value * alpha


@handles_complex("aten::add.Scalar")
def add_scalar(self: Tensor, other: Operand, alpha: Operand = 1) -> Tensor:
    """Compute `aten::add.Scalar`."""
    return add(self, other, alpha=alpha)


@handles_complex("aten::sub.Scalar")
def sub_scalar(self: Tensor, other: Operand, alpha: Operand = 1) -> Tensor:
    """Compute `aten::sub.Scalar`."""
    return sub(self, other, alpha=alpha)


@handles_complex("aten::rsub.Tensor", "aten::rsub.Scalar")
def rsub(self: Tensor, other: Operand, alpha: Operand = 1) -> Tensor:
    """Compute `aten::rsub`: other - self * alpha."""
    return sub(other, self, alpha=alpha)


@handles_complex("aten::mul.Tensor", "aten::mul.Scalar")
def mul(self: Operand, other: Operand) -> Tensor:
    """Compute `aten::mul`; a real factor multiplies both parts."""
    return product(*_operands(self, other, "mul"))


@handles_complex("aten::div.Tensor", "aten::div.Scalar")
def div(self: Operand, other: Operand) -> Tensor:
    """Compute `aten::div`; a real divisor divides both parts."""
    return divided(*_operands(self, other, "div"))


@handles_complex("aten::neg")
def neg(self: Tensor) -> Tensor:
    """Compute `aten::neg`: both parts; torch's own does not always change the sign of a zero."""
    return of_pairs(-torch.view_as_real(self))


@handles_complex("aten::addcmul")
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Operand = 1) -> Tensor:
    """Compute `aten::addcmul`: self + (value * tensor1) * tensor2."""
    return add(self, mul(tensor1 if value == 1 else mul(tensor1, value), tensor2))


@handles_complex("aten::reciprocal")
def reciprocal(self: Tensor) -> Tensor:
    """Compute `aten::reciprocal`, a quotient."""
    return divided(torch.ones_like(self), self)


@handles_complex("aten::abs")
def absolute(self: Tensor) -> Tensor:
    """Compute `aten::abs`: `hypot` of the parts."""
    return magnitude(self)


@handles_complex("aten::angle")
def angle(self: Tensor) -> Tensor:
    """Compute `aten::angle`: `atan2` of the parts."""
    real, imaginary = parts(self)
    return binary("atan2", imaginary, real)


@handles_complex("aten::sgn")
def sgn(self: Tensor) -> Tensor:
    """Compute `aten::sgn`: each part over the magnitude, 0 for 0."""
    return sign(self)


@handles_complex("aten::exp")
def exp(self: Tensor) -> Tensor:
    """Compute `aten::exp`."""
    return exponential(self)


@handles("aten::polar")
@handles_complex("aten::polar")
@rounds_itself
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Compute `aten::polar`: the cosine and the sine of the angle, times the magnitude."""
    if abs.dtype in LOW_PRECISION:
        raise refuse_use("polar", f"of {abs.dtype} tensors")
    return joined(abs * unary("cos", angle), abs * unary("sin", angle))


@handles_complex("aten::pow.Tensor_Scalar")
def pow_scalar(self: Tensor, exponent: Operand) -> Tensor:
    """Compute `aten::pow.Tensor_Scalar` for small whole exponents."""
    whole = int(exponent.real) if exponent == exponent.real and abs(exponent) <= _MOST_EXPONENT else None
    if whole is None or whole != exponent or not self.is_complex():
        raise refuse_use("pow", f"of complex numbers, but for whole exponents up to {_MOST_EXPONENT},")
    return power(self, whole)


_MOST_EXPONENT = 64


@handles_complex("aten::allclose")
def allclose(
    self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Compute `aten::allclose`: of magnitudes."""
    apart, allowed = magnitude(sub(self, other)), magnitude(_whole(other)) * rtol + atol
    close = (self == other) | (torch.isfinite(apart) & (apart <= allowed))
    return bool((close | (self.isnan() & other.isnan()) if equal_nan else close).all())


@handles_complex("aten::_to_copy")
def to_copy(self: Tensor, **wanted: Any) -> Tensor:
    """Compute `aten::_to_copy`: from complex numbers to others the real part is kept."""
    dtype = wanted.get("dtype")
    if dtype is None or dtype.is_complex or dtype is torch.bool or not self.is_complex():
        return converted(self, **wanted)
    return converted(_real_as(self, dtype), **wanted)


@handles_complex("aten::copy_")
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Compute `aten::copy_` from and to complex numbers."""
    if src.is_complex() and not self.is_complex() and self.dtype is not torch.bool:
        src = _real_as(src, self.dtype)
    return self.copy_(src, non_blocking)


def _real_as(value: Tensor, dtype: torch.dtype) -> Tensor:
    real = parts(value)[0]
    return real if dtype.is_floating_point else to_integers(real, dtype)


@handles_complex("aten::view.dtype")
def view_dtype(self: Tensor, dtype: torch.dtype) -> Tensor:
    """Compute `aten::view.dtype`: every NaN in the memory becomes the one NaN before its bits are seen."""
    if dtype != self.dtype:
        unify_nans(torch.view_as_real(self) if self.is_complex() else self)
    seen: Tensor = torch.ops.aten.view.dtype(self, dtype)
    return seen
