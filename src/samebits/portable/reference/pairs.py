"""Products and quotients of complex numbers, as pairs of real ones.

See "Complex numbers" in docs/reference/portable-numerics.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array


def product(x: Array, y: Array) -> Array:
    """Return the products of complex numbers."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    return _joined(a * c - b * d, a * d + b * c, x)


def quotient(x: Array, y: Array) -> Array:
    """Return the quotients of complex numbers: by the larger part of the divisor."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    flat = np.abs(c) >= np.abs(d)
    most, least = np.where(flat, c, d), np.where(flat, d, c)
    zero = most == 0
    ratio = np.where(zero, most, least / most)
    whole = np.where(zero, np.abs(most), most + least * ratio)
    real = np.where(flat, a, b) + np.where(flat, b, a) * ratio
    return _joined(real / whole, np.where(flat, b - a * ratio, b * ratio - a) / whole, x)


def _joined(real: Array, imaginary: Array, like: Array) -> Array:
    out = np.empty(like.shape, like.dtype)
    out.real, out.imag = real, imaginary
    return out
