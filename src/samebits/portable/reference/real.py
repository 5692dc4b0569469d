"""The parts of elementary functions, for float32 and for float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from samebits.portable.reference.coefficients import CONSTANTS, POLYNOMIALS
from samebits.portable.reference.fma import fma as any_fma

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array


@dataclass(frozen=True)
class Limits:
    """The arguments beyond which a function is constant, or the smallest exponent that matters."""

    exp_top: float
    exp_bottom: float
    exp2_top: float
    exp2_bottom: float
    expm1_bottom: float
    expm1_lost: float
    tanh_top: float
    erf_top: float


_LIMITS = {
    "f32": Limits(89, -104, 129, -151, -20, -100, 10, 4),
    "f64": Limits(710, -746, 1025, -1076, -40, -1000, 20, 6),
}


class Real:
    """Arithmetic in one float type.

    Args:
        dtype: float32 or float64.
    """

    def __init__(self, dtype: Any) -> None:
        self._type = np.dtype(dtype).type
        self._suffix = "f32" if self._type is np.float32 else "f64"
        self._rounder = self._type(1.5 * 2.0 ** (23 if self._suffix == "f32" else 52))
        self.limits = _LIMITS[self._suffix]

    def __call__(self, value: float) -> Any:
        """Return a number of this type."""
        return self._type(value)

    def constant(self, name: str) -> Any:
        """Return a constant of docs/reference/portable-numerics.md."""
        return self._type(CONSTANTS[f"{name}_{self._suffix}"])

    def fma(self, a: Array, b: Array, c: Array) -> Array:
        """Return a b + c, rounded once."""
        return any_fma(*(np.asarray(each, dtype=self._type) for each in (a, b, c)))

    def terms(self, name: str, x: Array) -> Array:
        """Return the polynomial of this name, by Horner's rule with fma."""
        coefficients = POLYNOMIALS[f"{name}_{self._suffix}"]
        p = np.full_like(x, coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            p = self.fma(p, x, self._type(coefficient))
        return p

    def round(self, x: Array) -> Array:
        """Return the nearest integer, ties to even, for the small numbers that matter."""
        return np.asarray((x + self._rounder) - self._rounder)

    def times_rounded(self, x: Array, y: Array) -> Array:
        """Return the integer nearest to x y, ties to even."""
        return np.asarray(self.fma(x, y, self._rounder) - self._rounder)

    def whole(self, k: Array) -> Array:
        """Return an integral float as an integer; anything if it is not integral, or too large to matter."""
        return np.asarray(np.nan_to_num(np.clip(k, -5000, 5000)), dtype=np.int32)


def exp_parts(real: Real, x: Array, x_low: Array) -> tuple[Array, Array, Array]:
    """Return r, more and k: e^(x + x_low) = (1 + r + more) 2^k."""
    k = real.times_rounded(x, real.constant("LOG2_E"))
    head = real.fma(-k, real.constant("LN2_HIGH"), x)
    tail = real.fma(-k, real.constant("LN2_LOW"), x_low)
    r = head + tail
    r_low = (head - r) + tail
    more = real.fma(r * r, real.fma(r, real.terms("exp", r), real(0.5)), r_low)
    return r, more, real.whole(k)


def one_plus(real: Real, r: Array, more: Array) -> Array:
    """Return 1 + r + more."""
    high = real(1) + r
    return np.asarray(high + ((r - (high - 1)) + more))


def exp_pair(real: Real, x: Array, x_low: Array) -> tuple[Array, Array, Array]:
    """Return high, low and k: e^(x + x_low) = (high + low) 2^k."""
    r, more, k = exp_parts(real, x, x_low)
    first = 1 + r
    second = (r - (first - 1)) + more
    high = first + second
    return high, (first - high) + second, k


def split(real: Real, x: Array) -> tuple[Array, Array]:
    """Return mantissa and k: x = mantissa 2^k, the mantissa from sqrt(1/2), rounded, on."""
    mantissa, exponent = np.frexp(np.asarray(where_normal(x)))
    edge = real(float.fromhex("0x1.6a09e8p-1" if real(0).dtype == np.float32 else "0x1.6a09e667f3bcdp-1"))
    small = mantissa < edge
    return np.where(small, 2 * mantissa, mantissa), np.where(small, exponent - 1, exponent).astype(x.dtype)


def where_normal(x: Array) -> Array:
    """Return x, and 1 in place of what has no logarithm: no caller uses what comes of it."""
    return np.where((x > 0) & (x < np.inf), x, x.dtype.type(1))


def log_of_mantissa(real: Real, f: Array) -> tuple[Array, Array]:
    """Return high and low: log(1 + f) = high + low."""
    half = real(0.5) * f
    square = half * f
    square_low = real.fma(half, f, -square)
    high = f - square
    return high, ((f - high) - square) + real.fma(f * (f * f), real.terms("log", f), -square_low)


def log_parts(real: Real, x: Array) -> tuple[Array, Array]:
    """Return high and low: log(x) = high + low."""
    mantissa, k = split(real, x)
    whole = k * real.constant("LN2_HIGH")
    high, low = log_of_mantissa(real, mantissa - 1)
    total = whole + high
    return total, ((whole - total) + high) + real.fma(k, real.constant("LN2_LOW"), low)


def log_pair(real: Real, x: Array) -> tuple[Array, Array]:
    """Return the same, high being the logarithm rounded."""
    first, second = log_parts(real, x)
    high = first + second
    return high, (first - high) + second


def log_or_special(x: Array, result: Array) -> Array:
    """Return `result` where the logarithm of x is finite."""
    special = np.where(x == 0, -np.inf, np.nan)
    return np.where(x == np.inf, x, np.where(x > 0, result, special))
