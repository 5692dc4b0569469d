"""Fourier transforms: stages of small transforms over pairs of real numbers.

See "Fourier transforms" in docs/reference/portable-numerics.md. A complex number is a pair of arrays here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from samebits.portable.reference.fma import fma

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.portable.reference.fma import Array

    Pair = tuple[Array, Array]


@dataclass(frozen=True)
class Plan:
    """The numbers that a transform needs.

    Args:
        radices: of the stages.
        table: their factors, as native/portable/parameters.h says.
        turns: for an even number of real numbers, cosine and sine of k / n of a turn for k = 0 … n / 2.
        scale: multiplies the result.
    """

    radices: Sequence[int]
    table: Array
    turns: Array | None
    scale: float


def of_complex(lines: Array, plan: Plan, *, inverse: bool) -> Array:
    """Return the transforms of the rows of a matrix."""
    parts = lines.real, lines.imag
    return _joined(_exchanged(_stages(_exchanged(parts), plan)) if inverse else _stages(parts, plan), plan)


def of_reals(lines: Array, plan: Plan) -> Array:
    """Return the first halves of the transforms of rows of real numbers, and the middles."""
    if plan.turns is None:
        re, im = _stages((lines, np.zeros_like(lines)), plan)
        kept = slice(lines.shape[1] // 2 + 1)
        return _joined((re[:, kept], im[:, kept]), plan)
    return _joined(_of_pairs(_stages((lines[:, ::2], lines[:, 1::2]), plan), plan.turns), plan)


def to_reals(lines: Array, plan: Plan, n: int) -> Array:
    """Return the n real numbers of which each row is the beginning of the spectrum."""
    parts = lines.real, lines.imag.copy()
    parts[1][:, 0] = 0
    if plan.turns is None:
        real = _exchanged(_stages(_exchanged(_mirrored(parts)), plan))[0]
    else:
        parts[1][:, -1] = 0
        pairs = _exchanged(_stages(_exchanged(_to_pairs(parts, plan.turns)), plan))
        real = np.stack(pairs, -1).reshape(len(lines), n)
    return np.asarray(real * real.dtype.type(plan.scale))


def _joined(parts: Pair, plan: Plan) -> Array:
    scale = parts[0].dtype.type(plan.scale)
    whole = np.empty(parts[0].shape, f"c{2 * scale.itemsize}")
    whole.real, whole.imag = parts[0] * scale, parts[1] * scale
    return whole


def _exchanged(parts: Pair) -> Pair:
    return parts[1], parts[0]


def _stages(x: Pair, plan: Plan) -> Pair:
    (transforms, length), m, s, at = x[0].shape, x[0].shape[1], 1, 0
    table = plan.table
    for radix in plan.radices:
        m //= radix
        roots = table[at : at + radix * (radix % 2)]
        at += len(roots)
        inputs = [(x[0][:, k], x[1][:, k]) for k in np.arange(length).reshape(radix, m * s)]
        outputs = _odd(inputs, roots) if radix % 2 else _four(inputs) if radix == 4 else _two(inputs)
        if m > 1:
            factors = table[at : at + (radix - 1) * m].reshape(m, radix - 1, 2).repeat(s, 0)
            at += (radix - 1) * m
            outputs[1:] = [_turned_back(b, factors[:, j]) for j, b in enumerate(outputs[1:])]
        places = [np.stack([b[part].reshape(transforms, m, s) for b in outputs], 2) for part in (0, 1)]
        x = places[0].reshape(transforms, length), places[1].reshape(transforms, length)
        s *= radix
    return x


def _turned_back(b: Pair, turn: Array) -> Pair:
    """Return the product with the conjugate of a number on the circle, whose parts are last in `turn`."""
    cosine, sine = turn[..., 0], turn[..., 1]
    return fma(b[0], cosine, b[1] * sine), fma(b[1], cosine, -(b[0] * sine))


def _plus(a: Pair, b: Pair) -> Pair:
    return a[0] + b[0], a[1] + b[1]


def _minus(a: Pair, b: Pair) -> Pair:
    return a[0] - b[0], a[1] - b[1]


def _minus_i(a: Pair, b: Pair) -> Pair:
    """Return a - i b."""
    return a[0] + b[1], a[1] - b[0]


def _plus_i(a: Pair, b: Pair) -> Pair:
    return a[0] - b[1], a[1] + b[0]


def _two(a: list[Pair]) -> list[Pair]:
    return [_plus(a[0], a[1]), _minus(a[0], a[1])]


def _four(a: list[Pair]) -> list[Pair]:
    even, odd = _plus(a[0], a[2]), _plus(a[1], a[3])
    less, crossed = _minus(a[0], a[2]), _minus(a[1], a[3])
    return [_plus(even, odd), _minus_i(less, crossed), _minus(even, odd), _plus_i(less, crossed)]


def _odd(a: list[Pair], roots: Array) -> list[Pair]:
    radix = len(a)
    half = range(1, radix // 2 + 1)
    sums = [_plus(a[k], a[radix - k]) for k in half]
    differences = [_minus(a[k], a[radix - k]) for k in half]
    found = [a[0]] * radix
    for each in sums:
        found[0] = _plus(found[0], each)
    for j in half:
        cosine, sine = roots[j]
        even: Pair = (fma(sums[0][0], cosine, a[0][0]), fma(sums[0][1], cosine, a[0][1]))
        crossed: Pair = (sine * differences[0][0], sine * differences[0][1])
        for k in half[1:]:
            cosine, sine = roots[j * k % radix]
            one, other = sums[k - 1], differences[k - 1]
            even = fma(one[0], cosine, even[0]), fma(one[1], cosine, even[1])
            crossed = fma(other[0], sine, crossed[0]), fma(other[1], sine, crossed[1])
        found[j], found[radix - j] = _minus_i(even, crossed), _plus_i(even, crossed)
    return found


def _of_pairs(z: Pair, turns: Array) -> Pair:
    """Return the first half of the transform of real numbers.

    Args:
        z: the transform of n / 2 complex numbers, each an even and the next odd number.
        turns: of `Plan`.
    """
    half = z[0].shape[1]
    there = np.arange(half + 1) % half
    back = -np.arange(half + 1) % half
    scale = z[0].dtype.type(0.5)
    even = scale * (z[0][:, there] + z[0][:, back]), scale * (z[1][:, there] - z[1][:, back])
    odd = scale * (z[1][:, there] + z[1][:, back]), scale * (z[0][:, back] - z[0][:, there])
    return _plus(even, _turned_back(odd, turns))


def _to_pairs(x: Pair, turns: Array) -> Pair:
    """Return the spectrum of n / 2 complex numbers, each an even and the next odd one of n real ones.

    Args:
        x: the first half of the spectrum of the real numbers, and the middle.
        turns: of `Plan`.
    """
    one = x[0][:, :-1], x[1][:, :-1]
    other = x[0][:, :0:-1], x[1][:, :0:-1]
    cosine, sine = turns[:-1, 0], turns[:-1, 1]
    even = one[0] + other[0], one[1] - other[1]
    left = one[0] - other[0], one[1] + other[1]
    odd = fma(left[0], cosine, -(left[1] * sine)), fma(left[1], cosine, left[0] * sine)
    return _plus_i(even, odd)


def _mirrored(x: Pair) -> Pair:
    """Return the whole spectrum of an odd number of real numbers from its first half."""
    return np.concatenate([x[0], x[0][:, :0:-1]], 1), np.concatenate([x[1], -x[1][:, :0:-1]], 1)
