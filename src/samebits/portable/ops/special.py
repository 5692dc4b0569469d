"""Bessel functions, polygamma and zeta, and window functions."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable._refusals import refuse_use
from samebits.portable._registry import declares_handlers, handles, rounds_itself
from samebits.portable._tensors import is_real
from samebits.portable.kernels.elementwise import sqrt, unary

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from samebits.portable._registry import Handler, Table

    Shape = Callable[..., Tensor]

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
    return torch.where(far, total / (beyond * math.sqrt(math.pi)), close)


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
        raise refuse_use("polygamma", f"of order {n} below {_LEAST:.0f}")
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


def _window(
    shape: Shape,
    window_length: int,
    periodic: bool = True,
    *parameters: float,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    **_: Any,
) -> Tensor:
    """Return `shape` at positions 0 .. 1; a periodic window is the longer one without its last value."""
    if window_length < 0:
        raise RuntimeError(f"a window of {window_length} values: 0 or more were expected")
    dtype = dtype or torch.get_default_dtype()
    if window_length <= 1:
        return torch.ones(window_length, dtype=dtype, device=device)
    last = window_length if periodic else window_length - 1
    positions = torch.arange(window_length, dtype=torch.int64, device=device).to(torch.float64) / last
    return shape(positions, *parameters).to(dtype)


def _cosine(turns: Tensor) -> Tensor:
    return unary("cos", turns * (2 * math.pi))


def _hamming(positions: Tensor, alpha: float = 0.54, beta: float = 0.46) -> Tensor:
    return alpha - _cosine(positions) * beta


def _hann(positions: Tensor) -> Tensor:
    return _hamming(positions, 0.5, 0.5)


def _blackman(positions: Tensor) -> Tensor:
    return (_cosine(positions * 2) * 0.08 - _cosine(positions) * 0.5) + 0.42


def _bartlett(positions: Tensor) -> Tensor:
    return torch.where(positions <= 0.5, positions * 2, 2 - positions * 2)


def _kaiser(positions: Tensor, beta: float = 12.0) -> Tensor:
    side = positions * 2 - 1
    top = torch.full_like(positions, beta)
    return bessel(sqrt(1 - side * side) * beta, 0, scaled=False) / bessel(top, 0, scaled=False)


@declares_handlers
def _factories() -> Table:
    shapes: dict[str, tuple[Shape, tuple[str, ...]]] = {
        "aten::bartlett_window": (_bartlett, ("default", "periodic")),
        "aten::blackman_window": (_blackman, ("default", "periodic")),
        "aten::hamming_window": (_hamming, ("default", "periodic", "periodic_alpha", "periodic_alpha_beta")),
        "aten::hann_window": (_hann, ("default", "periodic")),
        "aten::kaiser_window": (_kaiser, ("default", "periodic", "beta")),
    }
    handlers: dict[str, Handler] = {}
    for name, (shape, overloads) in shapes.items():
        handler = rounds_itself(functools.partial(_window, shape))
        handlers |= {f"{name}.{overload}".removesuffix(".default"): handler for overload in overloads}
    return handlers
