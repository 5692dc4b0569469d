"""sin, cos, tan and their inverses, in float64."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from samebits.portable.reference.real import Real

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.portable.reference.fma import Array

where = np.where
REAL = Real(np.float64)
fma, constant, terms = REAL.fma, REAL.constant, REAL.terms
LIMIT = 2.0**19


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return total and low: a + b = total + low."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def reduce(x: Array) -> tuple[Array, Array, Array]:
    """Return r, r_low and k: x = k pi/2 + r + r_low."""
    small = np.where(np.abs(x) <= LIMIT, x, 0)
    r, r_low, k = _reduce_small(np.where(np.isfinite(x), small, x * 0))
    for index in np.argwhere((np.abs(x) > LIMIT) & np.isfinite(x)):
        at = tuple(index)
        r[at], r_low[at], k[at] = _reduce_large(float(x[at]))
    return r, r_low, k


def _reduce_small(x: Array) -> tuple[Array, Array, Array]:
    k = REAL.round(x * constant("TWO_BY_PI"))
    first = fma(-k, constant("HALF_PI_1"), x)
    second, second_low = two_sum(first, -k * constant("HALF_PI_2"))
    third, third_low = two_sum(second, -k * constant("HALF_PI_3"))
    low = fma(-k, constant("HALF_PI_4"), second_low + third_low)
    r = third + low
    return r, (third - r) + low, k


def _reduce_large(x: float) -> tuple[float, float, float]:
    """Reduce in integers: x 2/pi modulo 4 in units of 2^-190, from the 192 digits of 2/pi that matter."""
    mantissa, exponent = np.frexp(abs(x))
    m, e = int(mantissa * 2**53), int(exponent) - 53
    start = e - 1  # number of the first digit after the point that counts
    digits = (_two_by_pi() >> (1400 - (start + 191))) & (2**192 - 1)
    product = m * digits % 2**192
    quadrant = (product + 2**189) >> 190
    rest = product - (quadrant << 190)
    size = abs(rest)
    shift = size.bit_length() - 53
    head = float(Fraction(size >> shift << shift, 2**190))
    tail = float(Fraction((size >> (shift - 53)) & (2**53 - 1), 2**190) * 2 ** (shift - 53))
    full, low_part = constant("HALF_PI_FULL"), constant("HALF_PI_REST")
    y = np.float64(head) * full
    one, two = np.asarray(head), np.asarray(tail)
    y_low = fma(one, low_part, fma(two, full, fma(one, full, -y)))
    total = y + y_low
    total_low = (y - total) + y_low
    sign = -1.0 if (rest < 0) != (x < 0) else 1.0
    turns = float(quadrant & 3)
    return float(sign * total), float(sign * total_low), -turns if x < 0 else turns


@cache
def _two_by_pi() -> int:
    """Return the first 1400 binary digits of 2/pi after the point, by Machin's formula for pi."""
    bits = 1500

    def atan_of_inverse(n: int) -> int:
        total, term, k = 0, (1 << bits) // n, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term //= n * n
            k += 2
        return total

    pi = 4 * (4 * atan_of_inverse(5) - atan_of_inverse(239))
    return (2 << (bits + 1400)) // pi


def of_pi(x: Array) -> tuple[Array, Array, Array]:
    """Return r, r_low and quarters: pi x = quarters pi/2 + r + r_low."""
    quarters = REAL.round(2 * x)
    rest = x - 0.5 * quarters
    pi = 2 * constant("HALF_PI_FULL")
    r = rest * pi
    return r, fma(rest, 2 * constant("HALF_PI_REST"), fma(rest, pi, -r)), quarters


def _sin_cos(r: Array, r_low: Array) -> tuple[Array, Array, Array, Array]:
    z = r * r
    z_low = fma(r, r, -z)
    half = 0.5 * z
    s_low = fma(r * z, terms("sin", z), fma(-half, r_low, r_low))
    c = 1 - half
    c_low = ((1 - c) - half) + fma(z * z, terms("cos", z), -fma(np.float64(0.5), z_low, r * r_low))
    return r, s_low, c, c_low


def sin_turned(r: Array, r_low: Array, turns: Array) -> Array:
    """Return sin(r + r_low + turns pi/2)."""
    s, s_low, c, c_low = _sin_cos(r, r_low)
    n = REAL.whole(turns) if np.max(np.abs(turns), initial=0) < 5000 else np.fmod(turns, 4).astype(np.int64)
    value = where(n & 1, c + c_low, s + s_low)
    return where(n & 2, -value, value)


def tan_turned(r: Array, r_low: Array, turns: Array) -> Array:
    """Return tan(r + r_low + turns pi/2)."""
    s, s_low, c, c_low = _sin_cos(r, r_low)
    odd = np.fmod(turns, 2) != 0
    sine, cosine = s + s_low, c + c_low
    sine_low, cosine_low = (s - sine) + s_low, (c - cosine) + c_low
    n, n_low = where(odd, -cosine, sine), where(odd, -cosine_low, sine_low)
    d, d_low = where(odd, sine, cosine), where(odd, sine_low, cosine_low)
    q = n / d
    return np.asarray(q + (fma(-q, d, n) + fma(-q, d_low, n_low)) / d)


def sin(x: Array) -> Array:
    """Compute `sin` of every element."""
    r, r_low, k = reduce(x)
    return where(np.isfinite(x), where(x == 0, x, sin_turned(r, r_low, np.nan_to_num(k))), np.nan)


def cos(x: Array) -> Array:
    """Compute `cos` of every element."""
    r, r_low, k = reduce(x)
    return where(np.isfinite(x), sin_turned(r, r_low, np.nan_to_num(k) + 1), np.nan)


def tan(x: Array) -> Array:
    """Compute `tan` of every element."""
    r, r_low, k = reduce(x)
    return where(np.isfinite(x), where(x == 0, x, tan_turned(r, r_low, np.nan_to_num(k))), np.nan)


def _angle(n: Array, d: Array) -> tuple[Array, Array, Array]:
    """Return the angle of (d, n), 0 <= n <= d: v, more, octants."""
    wide = n > float.fromhex("0x1.a8p-2") * d
    less, n_low = two_sum(n, -d)
    total, d_low = two_sum(d, n)
    p, p_low = where(wide, less, n), where(wide, n_low, 0.0)
    q, q_low = where(wide, total, d), where(wide, d_low, 0.0)
    quotient = p / q
    rest = (fma(-quotient, q, p) + fma(-quotient, q_low, p_low)) / q
    plain = (n != 0) & (d < np.inf)
    v = where(plain, quotient, 0.0)
    z = v * v
    return v, where(plain, v * z * terms("atan", z) + rest, 0.0), where(wide, 1.0, 0.0)


def _of_octants(octants: Array, sign: Array, v: Array, more: Array) -> Array:
    unit = 0.5 * constant("HALF_PI_FULL")
    base = octants * unit
    at = sign * v
    high = base + at
    base_low = fma(octants, 0.5 * constant("HALF_PI_REST"), fma(octants, unit, -base))
    return np.asarray(high + (((base - high) + at) + fma(sign, more, base_low)))


def atan(x: Array) -> Array:
    """Compute `atan` of every element."""
    a = np.abs(x)
    steep = a > 1
    v, more, octants = _angle(where(steep, 1.0, a), where(steep, a, 1.0))
    result = _of_octants(where(steep, 2 - octants, octants), where(steep, -1.0, 1.0), v, more)
    return where(np.isnan(x), np.nan, np.copysign(result, x))


def atan2(y: Array, x: Array) -> Array:
    """Compute `atan2` of every element."""
    a, b = np.abs(x), np.abs(y)
    steep, left = a < b, np.signbit(x)
    most, least = where(steep, b, a), where(steep, a, b)
    scale = where(most > 2.0**1000, 2.0**-4, 1.0)
    same = least == np.inf
    v, more, octants = _angle(where(same, 1.0, least * scale), where(same, 1.0, most * scale))
    right = where(steep, 2 - octants, octants)
    result = _of_octants(where(left, 4 - right, right), where(steep == left, 1.0, -1.0), v, more)
    return where(np.isnan(x) | np.isnan(y), np.nan, np.copysign(result, y))


def _asin_of_root(w: Array) -> tuple[Array, Array]:
    s = np.sqrt(w)
    s_low = fma(-s, s, w) * where(s > 0, 0.5 / s, 0.0)
    return s, fma(s * w, terms("asin", w), s_low)


def asin(x: Array) -> Array:
    """Compute `asin` of every element."""
    a, z = np.abs(x), x * x
    near = fma(x * z, terms("asin", z), x)
    root, s_low = _asin_of_root(0.5 * (1 - a))
    s = 2 * root
    full = constant("HALF_PI_FULL")
    high = full - s
    far = high + (((full - high) - s) + fma(np.float64(-2), s_low, constant("HALF_PI_REST")))
    return where(a <= 0.5, near, np.copysign(where(a <= 1, far, np.nan), x))


def acos(x: Array) -> Array:
    """Compute `acos` of every element."""
    a, z = np.abs(x), x * x
    full, low_part = constant("HALF_PI_FULL"), constant("HALF_PI_REST")
    high = full - x
    near = high + (((full - high) - x) + fma(-(x * z), terms("asin", z), low_part))
    root, s_low = _asin_of_root(0.5 * (1 - a))
    s, pi = 2 * root, 2 * full
    back = pi - s
    left, right = back + (((pi - back) - s) + 2 * (low_part - s_low)), s + 2 * s_low
    return where(a <= 0.5, near, where(a <= 1, where(x < 0, left, right), np.nan))


UNARY: dict[str, Callable[[Array], Array]] = {
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "asin": asin,
    "acos": acos,
    "atan": atan,
}
