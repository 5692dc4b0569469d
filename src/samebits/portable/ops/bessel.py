"""Modified Bessel functions of order 0 and 1, and scaled `erfc`, in float64 ("Elementary functions")."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import declares_handlers
from samebits.portable.kernels.elementwise import sqrt, unary
from samebits.portable.ops.checks import is_real

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from samebits.portable._registry import Handler, Table

_EDGE = 20.0  # from here on the asymptotic series reaches the accuracy of float64
_POWER_TERMS = 50
_ASYMPTOTIC_TERMS = 30
_ERFCX_EDGE = 7.0
_ERFCX_TERMS = 30


def _of_float64(name: str, function: Callable[[Tensor], Tensor]) -> Handler:
    """Return a handler that computes in float64 and rounds once; integers give the default dtype."""

    def handler(self: Tensor) -> Tensor:
        dtype = self.dtype if is_real(self, name) else torch.get_default_dtype()
        return function(self.to(torch.float64)).to(dtype)

    return handler


def bessel(x: Tensor, order: int, scaled: bool) -> Tensor:
    """Return the modified Bessel function of the first kind of float64 values.

    Args:
        x: the values.
        order: 0 or 1.
        scaled: whether it is multiplied by exp(-|x|).
    """
    size = x.abs()
    near = size < _EDGE
    power = _power_series(torch.where(near, size, 0.0), order)
    far = _asymptotic_series(torch.where(near, _EDGE, size), order)
    if scaled:
        value = torch.where(near, power * unary("exp", -size), far)
    else:
        half = unary("exp", size * 0.5)  # its square may be infinite where the product is not
        value = torch.where(near, power, torch.where(size == math.inf, size, (half * far) * half))
    value = torch.where(size.isnan(), size, value)
    return torch.where(x < 0, -value, value) if order else value


def _power_series(x: Tensor, order: int) -> Tensor:
    """Return (x / 2)^order times the sum of (x^2 / 4)^k / (k! (k + order)!)."""
    square = (x * x) * 0.25
    term = torch.ones_like(x)
    total = term
    for k in range(1, _POWER_TERMS):
        term = (term * square) / (k * (k + order))
        total = total + term
    return (x * 0.5) * total if order else total


def _asymptotic_series(x: Tensor, order: int) -> Tensor:
    term = torch.ones_like(x)
    total = term
    for factor in _factors(order):
        term = (term * factor) / x
        total = total + term
    return total / sqrt(x * (2 * math.pi))


@functools.cache
def _factors(order: int) -> tuple[float, ...]:
    """Return the factors ((2k - 1)^2 - 4 order^2) / (8 k), rounded once."""
    terms = range(1, _ASYMPTOTIC_TERMS)
    return tuple(float(Fraction((2 * k - 1) ** 2 - 4 * order**2, 8 * k)) for k in terms)


def _erfcx(x: Tensor) -> Tensor:
    """Return exp(x^2) erfc(x), with x^2 as a short square and the rest, so that its error does not grow."""
    far = x > _ERFCX_EDGE
    near = torch.where(far, 0.0, x)
    top = torch.round(near * 16.0) * 0.0625
    rest = unary("exp", (near - top) * (near + top))
    close = torch.where(near == -math.inf, math.inf, (unary("exp", top * top) * unary("erfc", near)) * rest)
    beyond = torch.where(far, x, _ERFCX_EDGE)
    square = torch.reciprocal((beyond * beyond) * 2.0)
    term = torch.ones_like(x)
    total = term
    for k in range(1, _ERFCX_TERMS):
        term = -(term * square) * (2 * k - 1)
        total = total + term
    return torch.where(far, total / (beyond * _sqrt_pi()), close)


@functools.cache
def _sqrt_pi() -> float:
    return math.sqrt(math.pi)


@declares_handlers
def _in_float64() -> Table:
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "i0": functools.partial(bessel, order=0, scaled=False),
        "special_i0e": functools.partial(bessel, order=0, scaled=True),
        "special_i1": functools.partial(bessel, order=1, scaled=False),
        "special_i1e": functools.partial(bessel, order=1, scaled=True),
        "special_erfcx": _erfcx,
    }
    return {f"aten::{name}": _of_float64(name, function) for name, function in functions.items()}
