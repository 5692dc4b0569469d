"""Sampling at the positions of a grid: which inputs a sample is made of, and with what weights.

The tests of both users compare the results with torch's.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from samebits.portable.kernels.taps import cubic_weights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

_LINEAR, _NEAREST, _CUBIC = 0, 1, 2
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2


@dataclass(frozen=True)
class Tap:
    """One input position along one dimension for each sample; `slope` is the derivative of its weight."""

    index: Tensor
    inside: Tensor
    weight: Tensor
    slope: Tensor


@dataclass(frozen=True)
class Sampling:
    """How a grid is sampled: the numbers that torch gives interpolation and padding, and aligned corners."""

    mode: int
    padding: int
    align: bool


def _position(x: Tensor, size: int, align: bool) -> tuple[Tensor, float]:
    """Return a coordinate of -1 .. 1 as a position, and its derivative."""
    if align:
        return (x + 1) / 2 * (size - 1), (size - 1) / 2
    return ((x + 1) * size - 1) / 2, size / 2


def _padded(x: Tensor, size: int, how: Sampling) -> tuple[Tensor, Tensor]:
    """Return a position brought inside, and the derivative."""
    slope = torch.ones_like(x)
    if how.padding == _ZEROS:
        return x, slope
    if how.padding == _REFLECTION:
        low, high = (0, 2 * (size - 1)) if how.align else (-1, 2 * size - 1)
        if low == high:
            return torch.zeros_like(x), torch.zeros_like(x)
        least, span = low / 2, (high - low) / 2
        shifted = x - least
        slope = torch.where(shifted < 0, -slope, slope)
        extra = torch.fmod(shifted.abs(), span)
        odd = torch.fmod(torch.floor(shifted.abs() / span), 2) != 0
        slope = torch.where(odd, -slope, slope)
        x = torch.where(odd, span - extra + least, extra + least)
    outside = (x <= 0) | (x >= size - 1)
    clipped = torch.where(x > 0, x, 0.0)
    return torch.where(clipped < size - 1, clipped, float(size - 1)), torch.where(outside, 0.0, slope)


def _tap(at: Tensor, size: int, weight: Tensor, slope: Tensor) -> Tap:
    inside = (at >= 0) & (at <= size - 1)
    return Tap(torch.where(inside, at, 0.0).to(torch.int64), inside, weight, slope)


def _taps(coordinate: Tensor, size: int, how: Sampling) -> list[Tap]:
    x, factor = _position(coordinate, size, how.align)
    if how.mode == _CUBIC:
        first = torch.floor(x)
        t = x - first
        weights, slopes = cubic_weights(t), _cubic_slopes(t)
        positions = [_padded(first + (k - 1), size, how)[0] for k in range(4)]
        return [_tap(p, size, w, s * factor) for p, w, s in zip(positions, weights, slopes, strict=True)]
    x, slope = _padded(x, size, how)
    if how.mode == _NEAREST:
        return [_tap(torch.round(x), size, torch.ones_like(x), torch.zeros_like(x))]
    first, slope = torch.floor(x), slope * factor
    return [_tap(first, size, first + 1 - x, -slope), _tap(first + 1, size, x - first, slope)]


def _cubic_slopes(t: Tensor) -> list[Tensor]:
    a = -0.75

    def near(x: Tensor) -> Tensor:
        return (3 * (a + 2) * x - 2 * (a + 3)) * x

    def far(x: Tensor) -> Tensor:
        return (3 * a * x - 10 * a) * x + 8 * a

    return [far(t + 1), near(t), -near(1 - t), -far(2 - t)]


def corners(
    grid: Tensor, sizes: torch.Size, how: Sampling
) -> Iterator[tuple[Tensor, Tensor, tuple[Tap, ...]]]:
    """Yield flat index, whether inside, and taps, for each combination; the first dimension is outermost."""
    n = len(sizes)
    every = [_taps(grid[..., n - 1 - d].flatten(1), size, how) for d, size in enumerate(sizes)]
    for taps in itertools.product(*every):
        flat, inside = taps[0].index, taps[0].inside
        for tap, size in zip(taps[1:], sizes[1:], strict=True):
            flat, inside = flat * size + tap.index, inside & tap.inside
        yield flat, inside, taps


def weight_of(taps: tuple[Tap, ...], by: int = -1) -> Tensor:
    """Return the product of the weights, the first dimension's first; `by` has its slope instead."""
    factors = [tap.slope if d == by else tap.weight for d, tap in enumerate(taps)]
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product


def values_at(planes: Tensor, flat: Tensor, inside: Tensor) -> Tensor:
    """Return the values of (samples, channels, positions) at flat positions, 0 outside."""
    values = planes.gather(2, flat[:, None].expand(-1, planes.shape[1], -1))
    return torch.where(inside[:, None], values, 0.0)
