"""Sampling of planes and volumes at the positions of a grid."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels.contractions import gemm
from samebits.portable.kernels.reductions import accumulate_, sum_products_over
from samebits.portable.ops.conversions import linspace
from samebits.portable.ops.interpolation import cubic_weights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor


_LINEAR, _NEAREST, _CUBIC = 0, 1, 2
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2


@dataclass(frozen=True)
class _Tap:
    """One input position along one dimension for each sample; `slope` is the derivative of its weight."""

    index: Tensor
    inside: Tensor
    weight: Tensor
    slope: Tensor


@dataclass(frozen=True)
class _Sampling:
    mode: int
    padding: int
    align: bool


def _position(x: Tensor, size: int, align: bool) -> tuple[Tensor, float]:
    """Return a coordinate of -1 .. 1 as a position, and its derivative."""
    if align:
        return (x + 1) / 2 * (size - 1), (size - 1) / 2
    return ((x + 1) * size - 1) / 2, size / 2


def _padded(x: Tensor, size: int, how: _Sampling) -> tuple[Tensor, Tensor]:
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


def _tap(at: Tensor, size: int, weight: Tensor, slope: Tensor) -> _Tap:
    inside = (at >= 0) & (at <= size - 1)
    return _Tap(torch.where(inside, at, 0.0).to(torch.int64), inside, weight, slope)


def _taps(coordinate: Tensor, size: int, how: _Sampling) -> list[_Tap]:
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


def _corners(
    grid: Tensor, sizes: torch.Size, how: _Sampling
) -> Iterator[tuple[Tensor, Tensor, tuple[_Tap, ...]]]:
    """Yield flat index, whether inside, and taps, for each combination; the first dimension is outermost."""
    n = len(sizes)
    every = [_taps(grid[..., n - 1 - d].flatten(1), size, how) for d, size in enumerate(sizes)]
    for taps in itertools.product(*every):
        flat, inside = taps[0].index, taps[0].inside
        for tap, size in zip(taps[1:], sizes[1:], strict=True):
            flat, inside = flat * size + tap.index, inside & tap.inside
        yield flat, inside, taps


def _weight(taps: tuple[_Tap, ...], by: int = -1) -> Tensor:
    """Return the product of the weights, the first dimension's first; `by` has its slope instead."""
    factors = [tap.slope if d == by else tap.weight for d, tap in enumerate(taps)]
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product


def _values(planes: Tensor, flat: Tensor, inside: Tensor) -> Tensor:
    values = planes.gather(2, flat[:, None].expand(-1, planes.shape[1], -1))
    return torch.where(inside[:, None], values, 0.0)


@handles("aten::grid_sampler_2d", "aten::grid_sampler_3d")
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Compute `aten::grid_sampler_2d`, `aten::grid_sampler_3d`: corners are added one after the other."""
    how = _Sampling(interpolation_mode, padding_mode, align_corners)
    planes = input.flatten(2)
    out = planes.new_zeros((*planes.shape[:2], grid.shape[1:-1].numel()))
    for flat, inside, taps in _corners(grid, input.shape[2:], how):
        out = out + _values(planes, flat, inside) * _weight(taps)[:, None]
    return out.reshape(*input.shape[:2], *grid.shape[1:-1])


@handles("aten::grid_sampler_2d_backward", "aten::grid_sampler_3d_backward")
def grid_sampler_backward(
    grad_output: Tensor,
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: list[bool],
) -> tuple[Tensor | None, Tensor]:
    """Compute `aten::grid_sampler_2d_backward`, `aten::grid_sampler_3d_backward`."""
    how = _Sampling(interpolation_mode, padding_mode, align_corners)
    planes, grad = input.flatten(2), grad_output.flatten(2)
    n = grid.shape[-1]
    of_grid = [torch.zeros_like(grad[:, 0]) for _ in range(n)]
    shares, targets = [], []
    for flat, inside, taps in _corners(grid, input.shape[2:], how):
        targets.append(torch.where(inside, flat, -1))
        shares.append(grad * _weight(taps)[:, None])
        products = sum_products_over(grad, _values(planes, flat, inside), (1,))
        for d in range(n):
            of_grid[d] = of_grid[d] + products * _weight(taps, d)
    of_input = _spread(shares, targets, input) if output_mask[0] else None
    return of_input, torch.stack(of_grid[::-1], -1).reshape(grid.shape)


def _spread(shares: list[Tensor], targets: list[Tensor], input: Tensor) -> Tensor:
    """Add the shares up in ascending order of the samples, each sample's corners in order."""
    batch, channels = input.shape[:2]
    out = torch.zeros((batch * channels, input.shape[2:].numel(), 1), dtype=input.dtype)
    src = torch.stack(shares, -1).reshape(batch * channels, -1, 1)
    index = torch.stack(targets, -1).reshape(batch, 1, -1).expand(-1, channels, -1).reshape(src.shape)
    return accumulate_(out, index, src, skip=True).reshape(input.shape)


@handles("aten::affine_grid_generator")
def affine_grid_generator(theta: Tensor, size: list[int], align_corners: bool) -> Tensor:
    """Compute `aten::affine_grid_generator`: the product of (positions in -1 .. 1, then 1) and theta."""
    spatial = size[2:]
    steps = [_spaced(n, align=align_corners, like=theta) for n in spatial]
    axes = torch.meshgrid(*steps, indexing="ij")[::-1]
    points = torch.stack([*axes, torch.ones_like(axes[0])], dim=-1).reshape(1, -1, len(spatial) + 1)
    batch = points.expand(size[0], -1, -1)
    return gemm(batch, theta.transpose(1, 2)).reshape(size[0], *spatial, len(spatial))


def _spaced(n: int, *, align: bool, like: Tensor) -> Tensor:
    if n <= 1:
        return torch.zeros(n, dtype=like.dtype)
    coordinates = linspace(-1, 1, n, dtype=like.dtype)
    return coordinates if align else coordinates * (n - 1) / n
