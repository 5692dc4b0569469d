"""Powers, and functions of two numbers with a logarithm in them, in float64."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from samebits.portable.reference.circle import two_sum
from samebits.portable.reference.real import (
    Real,
    exp_pair,
    exp_parts,
    log_or_special,
    log_pair,
    log_parts,
    one_plus,
    split,
)

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array

where = np.where
REAL = Real(np.float64)
fma, constant, terms = REAL.fma, REAL.constant, REAL.terms


def log_wide(x: Array) -> tuple[Array, Array]:
    """Return high and low: log(x) = high + low to 2^-64."""
    mantissa, k = split(REAL, x)
    f = mantissa - 1
    d = 2 + f
    d_low = (2 - d) + f
    s = f / d
    s_low = (fma(-s, d, f) - s * d_low) / d
    w = s * s
    w_low = fma(2 * s, s_low, fma(s, s, -w))
    v = w * terms("power", w)
    full = constant("THIRD_FULL")
    third = full + v
    third_low = ((full - third) + v) + constant("THIRD_REST")
    p = w * third
    p_low = fma(w, third, -p) + fma(w, third_low, w_low * third)
    c = s * p
    c_low = fma(s, p, -c) + fma(s, p_low, s_low * p)
    half = s + c
    half_low = ((s - half) + c) + (s_low + c_low)
    whole = k * constant("LN2_HIGH")
    total = whole + 2 * half
    rest = ((whole - total) + 2 * half) + fma(k, constant("LN2_LOW"), 2 * half_low)
    high = total + rest
    return high, (total - high) + rest


def power(x: Array, y: Array, *, narrow: bool = False) -> Array:
    """Return x^y; `narrow` is for float32, whose logarithm need not be as good."""
    a, b = np.abs(x), np.abs(y)
    high, low = log_pair(REAL, a) if narrow else log_wide(a)
    log_a = where(a == np.inf, np.inf, where(a == 0, -np.inf, where(np.isnan(a), np.nan, high)))
    p = y * log_a
    p_low = fma(y, low, fma(y, log_a, -p))
    r, more, k = exp_parts(REAL, p, p_low)
    value = np.ldexp(one_plus(REAL, r, more), k)
    size = where(p > REAL.limits.exp_top, np.inf, where(p < REAL.limits.exp_bottom, 0, value))
    whole = np.trunc(b) == b
    odd = whole & (np.fmod(b, 2) == 1)
    signed = where(np.signbit(x) & odd, -size, size)
    real = where((x < 0) & ~whole & (a != np.inf), np.nan, signed)
    known = where(np.isnan(x) | np.isnan(y), np.nan, real)
    return where((y == 0) | (x == 1) | ((a == 1) & (b == np.inf)), 1, known)


def _times_pair(x: Array, high: Array, low: Array) -> Array:
    p = x * high
    rest = fma(x, low, fma(x, high, -p))
    return where(np.abs(p) < np.inf, p + rest, p)


def xlogy(x: Array, y: Array) -> Array:
    """Compute `xlogy` of every element."""
    high, low = log_pair(REAL, y)
    value, special = _times_pair(x, high, low), x * log_or_special(y, high)
    result = where((y > 0) & (y < np.inf), value, special)
    return where((x == 0) & ~np.isnan(y), 0, result)


def xlog1py(x: Array, y: Array) -> Array:
    """Compute `xlog1py` of every element."""
    u = 1 + y
    back = u - 1
    lost = (1 - (u - back)) + (y - back)
    first, second = log_parts(REAL, u)
    tiny = np.abs(y) < 2.0**-30
    rest = second + lost / u
    total = first + rest
    high = where(tiny, y, total)
    of_tiny = y * y * fma(y, constant("THIRD_FULL"), np.float64(-0.5))
    value = _times_pair(x, high, where(tiny, of_tiny, (first - total) + rest))
    result = where((u > 0) & (u < np.inf), value, x * log_or_special(u, high))
    return where((x == 0) & ~np.isnan(y), 0, result)


def hypot(x: Array, y: Array) -> Array:
    """Compute `hypot` of every element."""
    a, b = np.abs(x), np.abs(y)
    most, least = where(a > b, a, b), where(a > b, b, a)
    scale = where(most > 2.0**500, 2.0**-600, where(most < 2.0**-400, 2.0**600, 1.0))
    m, n = most * scale, least * scale
    mm, nn = m * m, n * n
    u = mm + nn
    u_low = ((mm - u) + nn) + (fma(m, m, -mm) + fma(n, n, -nn))
    root = np.sqrt(u)
    value = (root + where(root > 0, (fma(-root, root, u) + u_low) / (2 * root), 0.0)) * (1 / scale)
    known = where(np.isnan(x) | np.isnan(y), np.nan, value)
    return where((a == np.inf) | (b == np.inf), np.inf, known)


def _log_add(a: Array, b: Array, unit: Array, unit_low: Array) -> Array:
    top, bottom = where(a > b, a, b), where(a > b, b, a)
    d, d_low = two_sum(top, -bottom)
    s = d * unit
    s_low = fma(d, unit_low, fma(d_low, unit, fma(d, unit, -s)))
    e, e_low, k = exp_pair(REAL, -s, -s_low)
    y = np.ldexp(e, k)
    u = 1 + y
    u_low = ((1 - u) + y) + np.ldexp(e_low, k)
    high, low = log_parts(REAL, u)
    low = low + u_low / u
    c = 1 / unit
    term = high * c
    more = fma(low, c, fma(high, c, -term))
    c_low = fma(-c, unit, np.float64(1)) * c - unit_low * c * c
    total = top + term
    value = total + (((top - total) + term) + fma(high, c_low, more))
    known = where((a == b) & (np.abs(a) == np.inf), a, where(s > 745, top, value))
    return where(np.isnan(a) | np.isnan(b), np.nan, known)


def logaddexp(a: Array, b: Array) -> Array:
    """Compute `logaddexp` of every element."""
    return _log_add(a, b, np.float64(1), np.float64(0))


def logaddexp2(a: Array, b: Array) -> Array:
    """Compute `logaddexp2` of every element."""
    return _log_add(a, b, constant("LN2_FULL"), constant("LN2_REST"))
