"""Elementary functions ("Elementary functions" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import declares_handlers, handles
from samebits.portable._tensors import device_of
from samebits.portable.kernels.elementwise import UNARY, binary, sqrt, unary, unary_

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from samebits.portable._registry import Handler, Table

# The others have an op of another name, or one with more parameters.
_UNARY = tuple(name for name in UNARY if name not in {"ndtr", "log_ndtr", "logit"})
_BINARY = ("atan2", "hypot", "logaddexp", "logaddexp2")
_SIMPLE_POWERS: dict[float, Callable[[Tensor], Tensor]] = {
    0: torch.ones_like,
    1: torch.clone,
    2: lambda x: x * x,
    3: lambda x: (x * x) * x,
    0.5: sqrt,
    -0.5: lambda x: unary("rsqrt", x),
    -1: torch.reciprocal,
    -2: lambda x: torch.reciprocal(x * x),
}


def _floating(x: Tensor) -> Tensor:
    return x if x.is_floating_point() else x.to(torch.get_default_dtype())


def _unary(name: str) -> Handler:
    def handle(self: Tensor) -> Tensor:
        return unary(name, _floating(self))

    return handle


def _pair(self: Tensor | float, other: Tensor | float) -> tuple[Tensor, Tensor]:
    """Return both as tensors of the dtype that torch computes in."""
    dtype = torch.result_type(self, other)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    device = device_of(self, other)
    return _as_tensor(self, dtype, device), _as_tensor(other, dtype, device)


def _as_tensor(value: Tensor | float, dtype: torch.dtype, device: torch.device) -> Tensor:
    if isinstance(value, torch.Tensor):
        return value.to(device, dtype)
    return torch.tensor(value, dtype=dtype, device=device)


def _binary(name: str) -> Callable[[Tensor | float, Tensor | float], Tensor]:
    def handle(self: Tensor | float, other: Tensor | float) -> Tensor:
        return binary(name, *_pair(self, other))

    return handle


@handles("aten::tanh_backward")
def tanh_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    """Compute `aten::tanh_backward`: grad (1 - y y)."""
    return binary("tanh_backward", grad_output, output)


@handles("aten::sigmoid_backward")
def sigmoid_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    """Compute `aten::sigmoid_backward`: (grad (1 - y)) y."""
    return binary("sigmoid_backward", grad_output, output)


@handles("aten::logit")
def logit(self: Tensor, eps: float | None = None) -> Tensor:
    """Compute `aten::logit`, of `self` clamped to `eps` .. 1 - `eps` if there is one."""
    x = _floating(self)
    if eps is not None:
        low, high = torch.full_like(x, eps), torch.full_like(x, 1 - eps)
        x = torch.where(x < low, low, torch.where(x > high, high, x))
    return unary("logit", x)


@handles("aten::logit_backward")
def logit_backward(grad_output: Tensor, self: Tensor, eps: float | None = None) -> Tensor:
    """Compute `aten::logit_backward`: grad / (x (1 - x)), 0 where `eps` has cut x, NaN outside of 0 and 1."""
    value = grad_output / (self * (1 - self))
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    inside = (self >= torch.full_like(self, low)) & (self <= torch.full_like(self, high))
    return torch.where(inside, value, torch.full_like(value, math.nan if eps is None else 0.0))


@handles("aten::special_entr")
def entr(self: Tensor) -> Tensor:
    """Compute `aten::special_entr`: -x log(x)."""
    x = _floating(self)
    value = -binary("xlogy", x, x)
    return torch.where(x < 0, torch.full_like(x, -math.inf), torch.where(x == 0, torch.zeros_like(x), value))


@handles("aten::angle")
def angle(self: Tensor) -> Tensor:
    """Compute `aten::angle` of real numbers: 0, or pi for negative ones."""
    x = _floating(self)
    turned = torch.where(x < 0, torch.full_like(x, math.pi), torch.zeros_like(x))
    return torch.where(x.isnan(), x, turned)


@handles("aten::deg2rad")
def deg2rad(self: Tensor) -> Tensor:
    """Compute `aten::deg2rad`: the product with pi / 180, which is rounded first."""
    return torch.mul(_floating(self), math.pi / 180)


@handles("aten::rad2deg")
def rad2deg(self: Tensor) -> Tensor:
    """Compute `aten::rad2deg`: the product with 180 / pi, which is rounded first."""
    return torch.mul(_floating(self), 180 / math.pi)


@handles("aten::round.decimals")
def round_decimals(self: Tensor, *, decimals: int) -> Tensor:
    """Compute `aten::round.decimals`: times 10^decimals, to the nearest integer (ties to even), and back."""
    if not self.is_floating_point():
        return torch.round(self, decimals=decimals)
    scale = float(f"1e{abs(decimals)}")  # read, which rounds correctly; a power is the C library's
    if decimals < 0:
        return torch.round(self / scale) * scale
    return torch.round(self * scale) / scale


@handles("aten::pow.Tensor_Scalar")
def pow_scalar(self: Tensor, exponent: float) -> Tensor:
    """Compute `aten::pow.Tensor_Scalar`; some exponents are products, roots and quotients."""
    dtype = torch.result_type(self, exponent)
    if not dtype.is_floating_point:
        return torch.pow(self, exponent)
    x = self.to(dtype)
    known = _SIMPLE_POWERS.get(exponent)
    if known is not None:
        return known(x)
    return binary("pow", x, torch.tensor(exponent, dtype=dtype, device=x.device))


@handles("aten::pow.Tensor_Tensor")
def pow_tensor(self: Tensor, exponent: Tensor) -> Tensor:
    """Compute `aten::pow.Tensor_Tensor`, every pair as C's `pow`."""
    if not torch.result_type(self, exponent).is_floating_point:
        return torch.pow(self, exponent)
    return binary("pow", *_pair(self, exponent))


@handles("aten::pow.Scalar")
def pow_of_scalar(self: float, exponent: Tensor) -> Tensor:
    """Compute `aten::pow.Scalar`; a power of 2 is exp2."""
    if not torch.result_type(self, exponent).is_floating_point:
        return torch.pow(self, exponent)
    base, power = _pair(self, exponent)
    return unary("exp2", power) if self == 2 else binary("pow", base, power)


@handles("aten::ldexp.Tensor")
def ldexp(self: Tensor, other: Tensor) -> Tensor:
    """Compute `aten::ldexp`: the product with a power of 2, which is rounded first."""
    return torch.mul(self, pow_of_scalar(2.0, other))


@handles("aten::pow_.Scalar", "aten::pow_.Tensor")
def pow_in_place(self: Tensor, exponent: Tensor | float) -> Tensor:
    """Compute `aten::pow_`."""
    if isinstance(exponent, torch.Tensor):
        return self.copy_(pow_tensor(self, exponent))
    return self.copy_(pow_scalar(self, exponent))


@declares_handlers
def _of_one_name() -> Table:
    xlogy, xlog1py = _binary("xlogy"), _binary("xlog1py")
    return {
        **{f"aten::{name}": _unary(name) for name in _UNARY},
        **{f"aten::{name}_": functools.partial(unary_, name) for name in _UNARY},
        **{f"aten::{name}": _binary(name) for name in _BINARY},
        "aten::special_log_ndtr": _unary("log_ndtr"),
        "aten::xlogy.Tensor": xlogy,
        "aten::xlogy.Scalar_Self": xlogy,
        "aten::xlogy.Scalar_Other": xlogy,
        "aten::special_xlog1py": xlog1py,
        "aten::special_xlog1py.self_scalar": xlog1py,
        "aten::special_xlog1py.other_scalar": xlog1py,
    }
