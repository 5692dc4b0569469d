"""Gradients of interpolation and padding."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from samebits.deterministic_kernels.axis_maps import AxisMap, axis_map, real_of, spread
from samebits.portable.kernels.taps import interpolation_taps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch
    from torch import Tensor

    Sizes = Sequence[int]
    Scale = float | None
    Like = tuple[torch.dtype, torch.device]


@functools.lru_cache(maxsize=256)
def _interpolation(
    kind: str, sides: tuple[int, int], align: bool, scale: Scale, dtype: torch.dtype, device: torch.device
) -> AxisMap:
    taps = interpolation_taps(kind, *sides, align=align, scale=scale, real=real_of(dtype))
    return axis_map(*taps, sides[0], device)


def _interpolation_gradient(kind: str) -> Callable[..., Tensor]:
    def gradient(
        grad_output: Tensor, output_size: Sizes, input_size: Sizes, align_corners: bool, *scales: Scale
    ) -> Tensor:
        n = len(output_size)
        factors = [*scales, *[None] * (n - len(scales))]
        sides = zip(input_size[-n:], output_size, factors, strict=True)
        how = grad_output.dtype, grad_output.device
        maps = [_interpolation(kind, (i, o), align_corners, factor, *how) for i, o, factor in sides]
        return spread(grad_output, maps, grad_output)

    return gradient


@functools.lru_cache(maxsize=256)
def _padding(kind: str, size: int, before: int, after: int, like: Like) -> AxisMap:
    at = np.arange(size + before + after) - before
    if kind == "reflection":
        at = np.abs(at)
        at = np.where(at >= size, 2 * (size - 1) - at, at)
    inputs = np.clip(at, 0, size - 1)[:, None]
    return axis_map(inputs, np.ones(inputs.shape, real_of(like[0])), size, like[1])


def _padding_gradient(kind: str) -> Callable[..., Tensor]:
    def gradient(grad_output: Tensor, self: Tensor, padding: Sizes) -> Tensor:
        n = len(padding) // 2
        pairs = [padding[2 * d : 2 * d + 2] for d in reversed(range(n))]
        like = grad_output.dtype, grad_output.device
        sides = zip(self.shape[-n:], pairs, strict=True)
        return spread(grad_output, [_padding(kind, size, *pair, like) for size, pair in sides], self)

    return gradient


_INTERPOLATIONS = {
    "upsample_linear1d_backward": "linear",
    "upsample_bilinear2d_backward": "linear",
    "upsample_trilinear3d_backward": "linear",
    "upsample_bicubic2d_backward": "cubic",
    "_upsample_bilinear2d_aa_backward": "linear_aa",
    "_upsample_bicubic2d_aa_backward": "cubic_aa",
}
_PADDINGS = {
    "reflection_pad1d_backward": "reflection",
    "reflection_pad3d_backward": "reflection",
    "replication_pad1d_backward": "replication",
    "replication_pad2d_backward": "replication",
    "replication_pad3d_backward": "replication",
}
KERNELS: Mapping[str, Callable[..., object]] = {
    **{name: _interpolation_gradient(kind) for name, kind in _INTERPOLATIONS.items()},
    **{name: _padding_gradient(kind) for name, kind in _PADDINGS.items()},
}
"""By name of the op; its form that writes into a given tensor is computed by the same function."""
