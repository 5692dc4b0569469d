"""Derivatives of digamma, and the multivariate lgamma, in float64 ("Elementary functions")."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels.elementwise import unary
from samebits.portable.ops.checks import refuse

if TYPE_CHECKING:
    from torch import Tensor


_BERNOULLI = tuple(
    map(Fraction, ("1/6", "-1/30", "1/42", "-1/30", "5/66", "-691/2730", "7/6", "-3617/510", "43867/798"))
)
_LOG_PI = float.fromhex("0x1.250d048e7a1bdp+0")
_MOST = 170  # 171! is infinite in float64
_LEAST = -10000.0  # the sum has a term for each whole number from there to 10


@handles("aten::polygamma")
def polygamma(n: int, self: Tensor) -> Tensor:
    """Compute `aten::polygamma`: the derivative of that order of digamma; order 0 is digamma itself."""
    if n < 0:
        raise RuntimeError(f"polygamma of order {n}: 0 or more was expected")
    dtype = self.dtype if self.is_floating_point() else torch.get_default_dtype()
    if n == 0:
        return unary("digamma", self.to(dtype))
    x = self.to(torch.float64)
    if n == 1:
        return _trigamma(x).to(dtype)
    poles = (x <= 0) & (x == torch.floor(x))
    x = torch.where(poles, 0.0, x)  # a pole too; from -2^52 down there is nothing else
    if bool((x < _LEAST).any()):
        refuse("polygamma", f"of order {n} below {_LEAST:.0f}")
    factor = float(math.factorial(n)) if n <= _MOST else math.inf
    return ((factor if n % 2 else -factor) * _zeta(n + 1, x)).to(dtype)


@handles("aten::mvlgamma")
def mvlgamma(self: Tensor, p: int) -> Tensor:
    """Compute `aten::mvlgamma`: lgamma(x) + lgamma(x - 1/2) + … of p values, starting from the constant."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    dtype = self.dtype if self.is_floating_point() else torch.get_default_dtype()
    x = self.to(torch.float64)
    total = torch.full_like(x, (p * (p - 1)) / 4 * _LOG_PI)
    for k in range(p):
        total = total + unary("lgamma", x - k / 2)
    return total.to(dtype)


def _trigamma(x: Tensor) -> Tensor:
    """Return trigamma, by reflection below 1/2: pi^2 / sin^2(pi x) less the value at 1 - x."""
    low = x < 0.5
    value = _zeta(2, torch.where(low, 1 - x, x))
    sine = unary("sin", math.pi * (x - torch.round(x)))
    turned = (math.pi * math.pi) / (sine * sine) - value
    return torch.where(low, turned, value)


def _zeta(s: int, x: Tensor) -> Tensor:
    """Return the sum of (x + k)^-s over k from 0: by terms until x is 10 + s, then Euler and Maclaurin."""
    edge = float(10 + s)
    infinite = x == math.inf
    x = torch.where(x.isinf(), torch.full_like(x, math.nan), x)
    total, here = torch.zeros_like(x), x < edge
    while bool(here.any()):
        total = torch.where(here, total + _power(x, s), total)
        x = torch.where(here, x + 1, x)
        here = x < edge
    power = _power(x, s)
    rest = x * power / (s - 1) + 0.5 * power
    square = torch.reciprocal(x * x)
    term = power / x
    for coefficient in _coefficients(s):
        rest = rest + coefficient * term
        term = term * square
    return torch.where(infinite, torch.zeros_like(x), total + rest)


def _power(x: Tensor, s: int) -> Tensor:
    """Return x^-s, as a product from left to right."""
    one = torch.reciprocal(x)
    return functools.reduce(torch.mul, [one] * s)


@functools.cache
def _coefficients(s: int) -> tuple[float, ...]:
    """Return B(2j) / (2j)! s (s + 1) .. (s + 2j - 2), rounded once."""
    rising, coefficients = Fraction(s), []
    for j, bernoulli in enumerate(_BERNOULLI, start=1):
        coefficients.append(float(bernoulli * rising / math.factorial(2 * j)))
        rising *= (s + 2 * j - 1) * (s + 2 * j)
    return tuple(coefficients)
