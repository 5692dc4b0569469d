"""lgamma and digamma, in float64, one number after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from samebits.portable.reference.circle import of_pi, sin_turned, tan_turned
from samebits.portable.reference.powers import log_wide
from samebits.portable.reference.real import Real, log_or_special, log_parts

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array

REAL = Real(np.float64)
fma, constant, terms = REAL.fma, REAL.constant, REAL.terms


def lgamma(x: Array) -> Array:
    """Compute `lgamma` of every element."""
    return np.asarray([_lgamma(np.float64(each)) for each in x.ravel()], dtype=np.float64).reshape(x.shape)  # type: ignore[no-any-return]


def digamma(x: Array) -> Array:
    """Compute `digamma` of every element."""
    return np.asarray([_digamma(np.float64(each)) for each in x.ravel()], dtype=np.float64).reshape(x.shape)  # type: ignore[no-any-return]


def _stirling(x: Any) -> Any:
    high, low = log_wide(x)
    f, h = x - 0.5, high - 1
    h_low = ((high - h) - 1) + low
    p = f * h
    by_x = 1 / x
    series = by_x * terms("stirling", by_x * by_x)
    rest = fma(f, h_low, fma(f, h, -p)) + ((constant("HALF_LOG_TWO_PI") - 0.5) + series)
    return p + rest if p < np.inf else p


def _lgamma_positive(x: Any) -> Any:
    if x >= 8:
        return _stirling(x)
    product, high, low = np.float64(1), np.float64(0), np.float64(0)
    while x > 2.5:
        x = x - 1
        product = product * x
    if product > 1:
        high, low = log_parts(REAL, product)
    if x < 0.5:
        high, low = (-part for part in log_parts(REAL, x))
        value = x * terms("lgamma_one", x)
    elif x < 1.5:
        value = (x - 1) * terms("lgamma_one", x - 1)
    else:
        value = (x - 2) * terms("lgamma_two", x - 2)
    total = high + value
    lost = (high - total) + value if abs(high) > abs(value) else (value - total) + high
    return total + (lost + low)


def _lgamma(x: Any) -> Any:
    a = abs(x)
    if not np.isfinite(x):
        return a
    if x > 0:
        return _lgamma_positive(x)
    if a >= 2.0**52 or a == 0:
        return np.inf
    if a < 2.0**-60:
        high, low = log_parts(REAL, a)
        return -(high + low)
    r, r_low, quarters = of_pi(a if a < 2.0**50 else a - 2.0**50)
    sine = abs(sin_turned(r, r_low, quarters))
    if sine == 0:
        return np.inf
    high, low = log_wide(2 * constant("HALF_PI_FULL") / (a * sine))
    return (high - _lgamma_positive(a)) + low


def _digamma(x: Any) -> Any:
    reflected = shift = np.float64(0)
    if x == 0:
        return np.copysign(np.inf, -x)
    if x < 0:
        if x <= -(2.0**50):
            return np.nan
        r, r_low, quarters = of_pi(x)
        if r == 0 and quarters % 2 == 0:
            return np.nan
        reflected = -1 / x - 2 * constant("HALF_PI_FULL") / tan_turned(r, r_low, quarters)
        x = -x
    while x < 10:
        shift = shift + 1 / x
        x = x + 1
    by_x = 1 / x
    z = by_x * by_x
    series = fma(z, terms("digamma", z), 0.5 * by_x)
    high, low = log_parts(REAL, x)
    value = log_or_special(x, high + low)
    return x if x == np.inf else ((value - series) - shift) + reflected
