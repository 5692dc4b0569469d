"""Nodes and weights of Gauss and Legendre, as numbers that are rounded once."""

from __future__ import annotations

import functools
from decimal import Decimal, localcontext

DEGREE = 48
_DIGITS = 60
_CELLS = 400  # fine enough that each of them has one zero at most
_STEPS = 8


@functools.cache
def nodes() -> tuple[tuple[float, float], ...]:
    """Return pairs of a node in (0, 1), ascending, and its weight; the weights' sum is 1."""
    with localcontext() as context:
        context.prec = _DIGITS
        grid = [Decimal(cell) / _CELLS for cell in range(_CELLS + 1)]
        signs = [_legendre(point)[0] > 0 for point in grid]
        starts = [cell for cell in range(_CELLS) if signs[cell] != signs[cell + 1]]
        positive = [_refined((grid[cell] + grid[cell + 1]) / 2) for cell in starts]
        lower = [((1 - x) / 2, weight / 2) for x, weight in reversed(positive)]
        upper = [((1 + x) / 2, weight / 2) for x, weight in positive]
        return tuple((float(x), float(weight)) for x, weight in lower + upper)


def _legendre(x: Decimal) -> tuple[Decimal, Decimal]:
    """Return the polynomials of the degree and of the one below it."""
    before, value = Decimal(1), x
    for k in range(2, DEGREE + 1):
        before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
    return value, before


def _refined(x: Decimal) -> tuple[Decimal, Decimal]:
    """Return the zero near x, by Newton's method, and its weight in (-1, 1)."""
    for _ in range(_STEPS):
        value, before = _legendre(x)
        slope = DEGREE * (before - x * value) / (1 - x * x)
        x = x - value / slope
    value, before = _legendre(x)
    slope = DEGREE * (before - x * value) / (1 - x * x)
    return x, 2 / ((1 - x * x) * slope * slope)
