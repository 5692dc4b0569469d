"""Exponentials, logarithms and functions of them, for float32 and float64: NumPy and fma."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from samebits.portable.reference.real import (
    Real,
    exp_pair,
    exp_parts,
    log_of_mantissa,
    log_or_special,
    log_parts,
    one_plus,
    split,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.portable.reference.fma import Array

where = np.where


def exp(real: Real, x: Array) -> Array:
    """Compute `exp` of every element."""
    limits = real.limits
    r, more, k = exp_parts(real, x, real(0))
    result = np.ldexp(one_plus(real, r, more), k)
    return where(x > limits.exp_top, np.inf, where(x < limits.exp_bottom, 0, result))


def exp2(real: Real, x: Array) -> Array:
    """Compute `exp2` of every element."""
    k = real.round(x)
    y = x - k
    r = y * real.constant("LN2_FULL")
    r_low = real.fma(y, real.constant("LN2_REST"), real.fma(y, real.constant("LN2_FULL"), -r))
    more = real.fma(r * r, real.fma(r, real.terms("exp", r), real(0.5)), r_low)
    result = np.ldexp(one_plus(real, r, more), real.whole(k))
    return where(x > real.limits.exp2_top, np.inf, where(x < real.limits.exp2_bottom, 0, result))


def expm1(real: Real, x: Array) -> Array:
    """Compute `expm1` of every element."""
    fma = real.fma
    k = real.times_rounded(x, real.constant("LOG2_E"))
    head = fma(-k, real.constant("LN2_HIGH"), x)
    tail = -k * real.constant("LN2_LOW")
    r = head + tail
    r_low = (head - r) + tail
    half = real(0.5) * r
    square = half * r
    square_low = fma(half, r, -square)
    more = fma(r * (r * r), real.terms("exp", r), square_low + r_low)
    lost = where(-k < real.limits.expm1_lost, real(real.limits.expm1_lost), -k)
    one = np.ldexp(real(1), real.whole(lost))
    whole = 1 - one
    whole_low = where(one > 1, 1 - (whole + one), (1 - whole) - one)
    total = whole + r
    total_low = (whole - total) + r
    high = total + square
    low = (total - high) + square
    result = np.ldexp(high + (((total_low + whole_low) + low) + more), real.whole(k))
    bounded = where(x < real.limits.expm1_bottom, -1, result)
    return where(x == 0, x, where(x > real.limits.exp_top, np.inf, bounded))


def log(real: Real, x: Array) -> Array:
    """Compute `log` of every element."""
    high, low = log_parts(real, x)
    return log_or_special(x, high + low)


def log2(real: Real, x: Array) -> Array:
    """Compute `log2` of every element."""
    fma, full, rest = real.fma, real.constant("ONE_BY_LN2_FULL"), real.constant("ONE_BY_LN2_REST")
    mantissa, k = split(real, x)
    high, low = log_of_mantissa(real, mantissa - 1)
    p = high * full
    total = k + p
    p_low = fma(low, full, fma(high, rest, fma(high, full, -p)))
    return log_or_special(x, total + (((k - total) + p) + p_low))


def log10(real: Real, x: Array) -> Array:
    """Compute `log10` of every element."""
    fma, full, rest = real.fma, real.constant("ONE_BY_LN10_FULL"), real.constant("ONE_BY_LN10_REST")
    mantissa, k = split(real, x)
    high, low = log_of_mantissa(real, mantissa - 1)
    whole = k * real.constant("LOG10_2_HIGH")
    p = high * full
    total = whole + p
    p_low = fma(low, full, fma(high, rest, fma(high, full, -p)))
    return log_or_special(x, total + (((whole - total) + p) + fma(k, real.constant("LOG10_2_LOW"), p_low)))


def log1p(real: Real, x: Array) -> Array:
    """Compute `log1p` of every element."""
    u = 1 + x
    back = u - 1
    lost = (1 - (u - back)) + (x - back)
    high, low = log_parts(real, u)
    return where(x == 0, x, log_or_special(u, high + (low + lost / u)))


def tanh(real: Real, x: Array) -> Array:
    """Compute `tanh` of every element."""
    a, z = np.abs(x), x * x
    near = real.fma(x * z, real.terms("tanh", z), x)
    r, more, k = exp_parts(real, 2 * a, real(0))
    e = np.ldexp(one_plus(real, r, more), k)
    far = where(a > real.limits.tanh_top, 1, 1 - 2 / (e + 1))
    return where(a < 1, near, np.copysign(far, x))


def sigmoid(real: Real, x: Array) -> Array:
    """Compute `sigmoid` of every element."""
    fma, a = real.fma, np.abs(x)
    m, m_low, k = exp_pair(real, -a, real(0))
    e = np.ldexp(m, k)
    d = 1 + e
    d_low = ((1 - d) + e) + np.ldexp(m_low, k)
    by_d = 1 / d
    n = where(x < 0, m, real(1))
    n_low = where(x < 0, m_low, real(0))
    q = n * by_d
    left = fma(-q, d, n) + fma(-q, d_low, n_low)
    result = np.ldexp(fma(left, by_d, q), where(x < 0, k, 0))
    bottom = real.limits.exp_bottom
    return where(x > -bottom, 1, where(x < bottom, 0, result))


def erf(real: Real, x: Array) -> Array:
    """Compute `erf` of every element."""
    a = np.abs(x)
    near = real.fma(x, real.terms("erf", x * x), x)
    r, more, k = exp_parts(real, -real.terms("erf_far", a - 1), real(0))
    far = where(a > real.limits.erf_top, 1, 1 - np.ldexp(one_plus(real, r, more), k))
    return where(a < 1, near, np.copysign(far, x))


def rsqrt(real: Real, x: Array) -> Array:
    """Compute `rsqrt` of every element."""
    y = 1 / np.sqrt(x)
    xy = x * y
    xy_low = real.fma(x, y, -xy)
    left = real.fma(-xy, y, real(1)) - xy_low * y
    return where((x > 0) & (x < np.inf), real.fma(real(0.5) * y, left, y), y)


FUNCTIONS: dict[str, Callable[[Real, Array], Array]] = {
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "log": log,
    "log2": log2,
    "log10": log10,
    "log1p": log1p,
    "tanh": tanh,
    "sigmoid": sigmoid,
    "erf": erf,
    "rsqrt": rsqrt,
}
"""The functions by name; each takes the arithmetic of a dtype, and the values."""
