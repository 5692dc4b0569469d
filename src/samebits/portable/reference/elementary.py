"""Elementary functions, as docs/reference/portable-numerics.md has them.

Those that are defined here are computed in float64 for float32 too.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from samebits.portable.reference import circle
from samebits.portable.reference.exponentials import FUNCTIONS, exp, log, log1p
from samebits.portable.reference.gamma import digamma, lgamma
from samebits.portable.reference.powers import hypot, logaddexp, logaddexp2, power, xlog1py, xlogy
from samebits.portable.reference.real import Real, exp_pair, log_or_special, log_pair, log_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.portable.reference.fma import Array

where = np.where
REAL = Real(np.float64)
fma, constant, terms = REAL.fma, REAL.constant, REAL.terms


def erfc_parts(x: Array, x_low: Array) -> tuple[Array, Array, Array]:
    """Return high, low and k: erfc(x + x_low) = (high + low) 2^k."""
    s = x * x
    s_low = fma(2 * x, x_low, fma(x, x, -s))
    n, n_low = circle.two_sum(x, np.float64(-3))
    m, m_low = circle.two_sum(x, np.float64(3))
    t = n / m
    t_low = (fma(-t, m, n) + fma(-t, m_low, n_low)) / m
    rest = t * terms("erfcx", t)
    g = constant("ERFCX_FULL") + rest
    g_rest = ((constant("ERFCX_FULL") - g) + rest) + constant("ERFCX_REST")
    g_low = fma(t_low, terms("erfcx_slope", t), g_rest)
    d = 1 + 2 * x
    d_low = ((1 - d) + 2 * x) + 2 * x_low
    q = g / d
    q_low = (fma(-q, d, g) + fma(-q, d_low, g_low)) / d
    e, e_low, k = exp_pair(REAL, -s, -s_low)
    high = e * q
    return high, fma(e, q, -high) + fma(e_low, q, e * q_low), k


def erfc(x: Array) -> Array:
    """Compute `erfc` of every element."""
    a, start = np.abs(x), 1 - x
    near = start + (((1 - start) - x) - x * terms("erf", x * x))
    high, low, k = erfc_parts(where(a > 28, 28.0, a), np.float64(0))
    tail = np.ldexp(high + low, k)
    return np.asarray(where(a < 0.65, near, where(x < 0, 2 - tail, tail)))


def ndtr(x: Array) -> Array:
    """Compute `ndtr` of every element."""
    root, root_rest = constant("ROOT_HALF_FULL"), constant("ROOT_HALF_REST")
    y = x * root
    rest = fma(x, root_rest, fma(x, root, -y))
    a, start = np.abs(y), 1 + y
    near = start + (((1 - start) + y) + fma(y, terms("erf", y * y), rest))
    low_of_a = where(a > 28, 0.0, where(y < 0, -rest, rest))
    high, low, k = erfc_parts(where(a > 28, 28.0, a), low_of_a)
    tail = np.ldexp(high + low, k - 1)
    return np.asarray(where(a < 0.65, 0.5 * near, where(x < 0, tail, 1 - tail)))


def _exp_both(a: Array) -> tuple[Array, Array, Array, Array, Array]:
    m, m_low, k = exp_pair(REAL, a, np.float64(0))
    inverse = 1 / m
    left = fma(-m, inverse, np.float64(1))
    i = inverse * np.ldexp(1.0, np.maximum(-2 * k, -1000))
    return m, m_low, i, fma(-m_low, inverse, left) * i, k


def sinh(x: Array) -> Array:
    """Compute `sinh` of every element."""
    a, z = np.abs(x), x * x
    near = fma(x * z, terms("sinh", z), x)
    m, m_low, i, i_low, k = _exp_both(a)
    high = m - i
    low = ((m - high) - i) + (m_low - i_low)
    far = where(a > 711, np.inf, np.ldexp(high + low, k - 1))
    return where(a < 1, near, np.copysign(far, x))


def cosh(x: Array) -> Array:
    """Compute `cosh` of every element."""
    a = np.abs(x)
    m, m_low, i, i_low, k = _exp_both(a)
    high = m + i
    low = ((m - high) + i) + (m_low + i_low)
    return where(a > 711, np.inf, np.ldexp(high + low, k - 1))


def log_of_sum(x: Array, x_low: Array, twice: Any) -> Array:
    """Return log(x + x_low), and log 2 more where asked."""
    high, low = log_parts(REAL, x)
    more = where(twice, constant("LN2_FULL"), 0.0)
    total = high + more
    low = ((high - total) + more) + (low + where(twice, constant("LN2_REST"), 0.0))
    return np.asarray(total + (low + x_low / x))


def asinh(x: Array) -> Array:
    """Compute `asinh` of every element."""
    a, z = np.abs(x), x * x
    near = fma(x * z, terms("asinh", z), x)
    u = z + 1
    u_low = where(z > 1, (z - u) + 1, (1 - u) + z) + fma(x, x, -z)
    s = np.sqrt(u)
    s_low = (fma(-s, s, u) + u_low) / (2 * s)
    total = s + a
    total_low = ((s - total) + a) + s_low
    far = a > 2.0**30
    value = log_of_sum(where(far, a, total), where(far, 0.0, total_low), far)
    return where(a <= 0.5, near, np.copysign(log_or_special(a, value), x))


def acosh(x: Array) -> Array:
    """Compute `acosh` of every element."""
    t = x - 1
    square, twice = t * t, 2 * t
    p, p_low = circle.two_sum(twice, square)
    s = np.sqrt(p)
    s_low = (fma(-s, s, p) + (p_low + fma(t, t, -square))) * where(s > 0, 0.5 / s, 0.0)
    y = s + t
    y_low = ((s - y) + t) + s_low
    u, u_low = circle.two_sum(np.float64(1), y)
    far = x > 2.0**30
    value = log_of_sum(where(far, x, u), where(far, 0.0, u_low + y_low), far)
    return where(x >= 1, log_or_special(x, value), np.nan)


def atanh(x: Array) -> Array:
    """Compute `atanh` of every element."""
    a, z = np.abs(x), x * x
    near = fma(x * z, terms("atanh", z), x)
    n = 1 + a
    n_low = (1 - n) + a
    d = 1 - a
    q = n / d
    q_low = (fma(-q, d, n) + n_low) / d
    far = log_or_special(q, 0.5 * log_of_sum(q, q_low, False))
    return where(a <= 0.5, near, np.copysign(where(a <= 1, far, np.nan), x))


def sinc(x: Array) -> Array:
    """Compute `sinc` of every element."""
    a = np.abs(x)
    r, r_low, quarters = circle.of_pi(where(a < 2.0**50, a, 0.0))
    pi = 2 * constant("HALF_PI_FULL")
    sine = circle.sin_turned(r, r_low, quarters)
    d = a * pi
    d_low = fma(a, 2 * constant("HALF_PI_REST"), fma(a, pi, -d))
    q = sine / d
    value = q + (fma(-q, d, sine) - q * d_low) / d
    known = where(a < 2.0**-27, 1, value)
    return where(a < 2.0**50, known, where(np.isnan(x), x, 0))


def logit(x: Array) -> Array:
    """Compute `logit` of every element."""
    t = 2 * x - 1
    z = t * t
    near = 2 * fma(t * z, terms("atanh", z), t)
    d, d_low = circle.two_sum(np.float64(1), -x)
    q = x / d
    q_low = (fma(-q, d, x) - q * d_low) / d
    return where(np.abs(t) <= 0.5, near, log_or_special(q, log_of_sum(q, q_low, False)))


def log_ndtr(x: Array) -> Array:
    """Compute `log_ndtr` of every element."""
    root, root_rest = constant("ROOT_HALF_FULL"), constant("ROOT_HALF_REST")
    y = -x * root
    c = where(y > 2.0**500, 2.0**500, y)
    s = c * c
    y_low = -fma(x, root_rest, fma(x, root, y))
    n = circle.two_sum(c, np.float64(-3))[0]
    t = n / (c + 3)
    g = constant("ERFCX_FULL") + t * terms("erfcx", t)
    high, low = log_pair(REAL, 0.5 * g / (1 + 2 * c))
    s_low = fma(2 * c, y_low, fma(c, c, -s))
    total = high - s
    tail = total + (((high - total) - s) + (low - s_low))
    near, middle = log1p(REAL, -ndtr(-x)), log(REAL, ndtr(x))
    return where(x < -1.5, where(x < -(2.0**500), -np.inf, tail), where(x < 0, middle, near))


def erfinv(y: Array) -> Array:
    """Compute `erfinv` of every element."""
    a = np.abs(y)
    rest = 1 - a
    w = -log1p(REAL, -(a * a))
    x = where(w < 6, a * terms("erfinv", w), terms("erfinv_far", np.sqrt(w)))
    high, low, k = erfc_parts(where(x < 0.65, 0.65, x), np.float64(0))
    scale = np.ldexp(1.0, k)
    of_right = (rest - high * scale) - low * scale
    more = x * terms("erf", x * x)
    left = x + more
    of_left = (left - a) + ((x - left) + more)
    slope = constant("TWO_BY_ROOT_PI") * exp(REAL, -(x * x))
    e = where(x < 0.65, of_left, of_right) / slope
    corrected = x - e / fma(x, e, np.float64(1))
    known = where(a == 1, np.inf, corrected)
    return where(y == 0, y, np.copysign(where(a <= 1, known, np.nan), y))


_UNARY: dict[str, Callable[[Array], Array]] = {
    **circle.UNARY,
    "erfc": erfc,
    "ndtr": ndtr,
    "sinh": sinh,
    "cosh": cosh,
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
    "sinc": sinc,
    "logit": logit,
    "log_ndtr": log_ndtr,
    "erfinv": erfinv,
    "lgamma": lgamma,
    "digamma": digamma,
}
_BINARY: dict[str, Callable[..., Array]] = {
    "pow": power,
    "atan2": circle.atan2,
    "xlogy": xlogy,
    "xlog1py": xlog1py,
    "hypot": hypot,
    "logaddexp": logaddexp,
    "logaddexp2": logaddexp2,
}


def unary(name: str, x: Array) -> Array:
    """Return the function of this name of every element.

    Args:
        name: one of `samebits.portable.kernels.elementwise.UNARY`.
        x: float32 or float64.
    """
    with np.errstate(all="ignore"):
        if name in FUNCTIONS:
            return np.asarray(FUNCTIONS[name](Real(x.dtype), x), dtype=x.dtype)
        return np.asarray(_UNARY[name](x.astype(np.float64)), dtype=np.float64).astype(x.dtype)


def binary(name: str, x: Array, y: Array) -> Array:
    """Return the function of this name of every pair of elements.

    Args:
        name: one of `samebits.portable.kernels.elementwise.BINARY`.
        x: float32 or float64.
        y: the same dtype; a shape that broadcasts with the shape of x.
    """
    x, y = np.broadcast_arrays(x, y)
    with np.errstate(all="ignore"):
        if name == "tanh_backward":
            return np.asarray(x * (1 - y * y))
        if name == "sigmoid_backward":
            return np.asarray((x * (1 - y)) * y)
        function = _BINARY[name]
        if name == "pow":
            function = partial(function, narrow=x.dtype == np.float32)
        return np.asarray(function(x.astype(np.float64), y.astype(np.float64)), dtype=np.float64).astype(
            x.dtype
        )
