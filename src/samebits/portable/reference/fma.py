"""Fused multiply-add, made of operations that every machine has."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def fma(a: Array, b: Array, c: Array) -> Array:
    """Return `a * b + c` rounded once, element by element.

    Args:
        a: float32 or float64, all three alike; shapes that broadcast.
        b: the other factor.
        c: is added.

    Returns:
        the same dtype.
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    return _fma32(a, b, c) if a.dtype == np.float32 else _fma64(a, b, c)


def _fma32(a: Array, b: Array, c: Array) -> Array:
    # The product of two float32 is exact in float64. The sum is rounded to odd there (its last bit says
    # whether anything was lost), so that rounding it once more to float32 is rounding the exact value.
    with np.errstate(all="ignore"):
        product = a.astype(np.float64) * b.astype(np.float64)
        wide = c.astype(np.float64)
        total = product + wide
        virtual = total - product
        lost = (product - (total - virtual)) + (wide - virtual)
        bits = total.view(np.int64)
        inexact = (lost != 0) & np.isfinite(total) & (bits & 1 == 0)
        away = (lost > 0) == (total > 0)
        odd = np.where(inexact, np.where(away, bits + 1, bits - 1), bits)
        return odd.view(np.float64).astype(np.float32)


def _fma64(a: Array, b: Array, c: Array) -> Array:
    with np.errstate(all="ignore"):
        plain = a * b + c
    flat = [_exact(*three) for three in zip(a.ravel(), b.ravel(), c.ravel(), strict=True)]
    exact = np.array(flat, dtype=np.float64).reshape(a.shape)
    special = ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c))
    return np.where(special, plain, exact)


def _exact(a: float, b: float, c: float) -> float:
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        return 0.0
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    try:
        rounded = float(exact)
    except OverflowError:
        rounded = float("inf") if exact > 0 else -float("inf")
    return rounded if rounded or exact > 0 else -0.0
