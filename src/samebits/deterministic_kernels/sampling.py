"""Gradients of sampling at the positions of a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.deterministic_kernels.precision import exact_dtype
from samebits.portable.kernels.grid_corners import Sampling, corners, values_at, weight_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    Gradients = tuple[Tensor | None, Tensor | None]

_NEAREST = 1
_OF_CUDNN = (0, 0, True)  # the one way that cuDNN has: linear, zeros around, corners aligned


def grid_gradient(
    grad_output: Tensor,
    input: Tensor,
    grid: Tensor,
    *how: object,
) -> Gradients:
    """Return the gradients of planes or volumes, and of the positions at which they were sampled.

    Args:
        grad_output: of the samples: (batch, channels, ...).
        input: the planes: (batch, channels, ...).
        grid: the positions: (batch, ..., 2 or 3).
        *how: the numbers of interpolation and padding, whether corners are aligned, and which are wanted.
    """
    mode, padding, align, wanted = how
    given = grad_output.dtype
    exact = exact_dtype(given)
    gradient, planes = grad_output.flatten(2).to(exact), input.flatten(2).to(exact)
    here = grid.isfinite().all(-1).flatten(1)  # what is nowhere gives nothing back
    every = corners(grid.to(exact), input.shape[2:], Sampling(mode, padding, align))  # type: ignore[arg-type]
    found = [(flat, inside & here, taps) for flat, inside, taps in every]
    of_grid = torch.zeros((grid.shape[0], gradient.shape[2], grid.shape[-1]), dtype=exact, device=grid.device)
    for flat, inside, taps in found if mode != _NEAREST else ():
        products = torch.where(inside, (gradient * values_at(planes, flat, inside)).sum(1), 0)
        slopes = [weight_of(taps, d) for d in reversed(range(len(taps)))]
        shares = torch.where(inside.unsqueeze(-1), products.unsqueeze(-1) * torch.stack(slopes, -1), 0)
        of_grid = of_grid + shares
    of_grid = of_grid.reshape(grid.shape).to(grid.dtype)
    if not wanted[0]:  # type: ignore[index]
        return None, of_grid
    given_back = [gradient * weight_of(taps).unsqueeze(1) for _, _, taps in found]
    return _spread(given_back, [at[:2] for at in found], input).to(given), of_grid


def _spread(shares: list[Tensor], places: Sequence[tuple[Tensor, Tensor]], input: Tensor) -> Tensor:
    """Add shares of (batch, channels, samples) up at flat positions, where these are inside."""
    batch, channels = input.shape[:2]
    size = input.shape[2:].numel()
    flat = torch.stack([at for at, _ in places], 1).flatten(1)
    inside = torch.stack([within for _, within in places], 1).flatten(1)
    rows = flat + torch.arange(batch, device=flat.device).unsqueeze(1) * size
    # What is outside adds zeros, each to another row: many at one row would take long.
    spare = torch.arange(rows.numel(), device=flat.device).reshape(rows.shape) % max(batch * size, 1)
    values = torch.stack(shares, 2).flatten(2).movedim(1, 2)
    values = torch.where(inside.unsqueeze(-1), values, 0)
    out = values.new_zeros((batch * size, channels))
    out.index_put_((torch.where(inside, rows, spare).flatten(),), values.flatten(0, 1), accumulate=True)
    return out.reshape(batch, size, channels).movedim(2, 1).reshape(input.shape).contiguous()


def cudnn_grid_gradient(self: Tensor, grid: Tensor, grad_output: Tensor) -> Gradients:
    """Return the same for what cuDNN has sampled."""
    return grid_gradient(grad_output, self, grid, *_OF_CUDNN, (True, True))


KERNELS: Mapping[str, Callable[..., object]] = {
    "grid_sampler_2d_backward": grid_gradient,
    "grid_sampler_3d_backward": grid_gradient,
    "cudnn_grid_sampler_backward": cudnn_grid_gradient,
}
"""By name of the op."""
