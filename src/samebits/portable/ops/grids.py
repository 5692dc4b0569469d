"""Sampling of planes and volumes at the positions of a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels.contractions import gemm
from samebits.portable.kernels.grid_corners import Sampling, corners, values_at, weight_of
from samebits.portable.kernels.reductions import accumulate_, sum_products_over
from samebits.portable.ops.conversions import linspace

if TYPE_CHECKING:
    from torch import Tensor


@handles("aten::grid_sampler_2d", "aten::grid_sampler_3d")
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Compute `aten::grid_sampler_2d`, `aten::grid_sampler_3d`: corners are added one after the other."""
    how = Sampling(interpolation_mode, padding_mode, align_corners)
    planes = input.flatten(2)
    out = planes.new_zeros((*planes.shape[:2], grid.shape[1:-1].numel()))
    for flat, inside, taps in corners(grid, input.shape[2:], how):
        out = out + values_at(planes, flat, inside) * weight_of(taps)[:, None]
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
    how = Sampling(interpolation_mode, padding_mode, align_corners)
    planes, grad = input.flatten(2), grad_output.flatten(2)
    n = grid.shape[-1]
    of_grid = [torch.zeros_like(grad[:, 0]) for _ in range(n)]
    shares, targets = [], []
    for flat, inside, taps in corners(grid, input.shape[2:], how):
        targets.append(torch.where(inside, flat, -1))
        shares.append(grad * weight_of(taps)[:, None])
        products = sum_products_over(grad, values_at(planes, flat, inside), (1,))
        for d in range(n):
            of_grid[d] = of_grid[d] + products * weight_of(taps, d)
    of_input = _spread(shares, targets, input) if output_mask[0] else None
    return of_input, torch.stack(of_grid[::-1], -1).reshape(grid.shape)


def _spread(shares: list[Tensor], targets: list[Tensor], input: Tensor) -> Tensor:
    """Add the shares up in ascending order of the samples, each sample's corners in order."""
    batch, channels = input.shape[:2]
    shape = (batch * channels, input.shape[2:].numel(), 1)
    out = torch.zeros(shape, dtype=input.dtype, device=input.device)
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
        return torch.zeros(n, dtype=like.dtype, device=like.device)
    coordinates = linspace(-1, 1, n, dtype=like.dtype, device=like.device)
    return coordinates if align else coordinates * (n - 1) / n
