"""Gradients of pooling, and the opposite of pooling by largest values."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from samebits.deterministic_kernels.axis_maps import (
    AxisMap,
    axis_map,
    laid_out_like,
    real_of,
    spread,
)
from samebits.deterministic_kernels.precision import exact_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    Sizes = Sequence[int]
    Like = tuple[torch.dtype, torch.device]


def adaptive_mean_gradient(dims: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the gradient of adaptive average pooling over that many dimensions."""

    def gradient(grad_output: Tensor, self: Tensor) -> Tensor:
        like = grad_output.dtype, grad_output.device
        sides = zip(self.shape[-dims:], grad_output.shape[-dims:], strict=True)
        return spread(grad_output, [_adaptive(size, outputs, like) for size, outputs in sides], self)

    return gradient


@functools.lru_cache(maxsize=256)
def _adaptive(size: int, outputs: int, like: Like) -> AxisMap:
    at = np.arange(outputs)
    starts, ends = at * size // outputs, -(-(at + 1) * size // outputs)
    return _means(starts, ends, ends - starts, size, like)


def _means(starts: Any, ends: Any, counts: Any, size: int, like: Like) -> AxisMap:
    """Return the map of means over windows: positions from start to end, divided by a count."""
    taps = np.arange(max(int((ends - starts).max(initial=0)), 1))
    inputs = starts[:, None] + taps
    weights = np.where(inputs < ends[:, None], 1 / counts[:, None].astype(real_of(like[0])), 0)
    return axis_map(np.minimum(inputs, size - 1), weights.astype(real_of(like[0])), size, like[1])


def mean_gradient_3d(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    *how: Any,
) -> Tensor:
    """Return the gradient of average pooling over three dimensions.

    Args:
        grad_output: of the outputs.
        self: the input.
        kernel_size: of a window, for each dimension or for all.
        stride: between windows; that of the windows' size if it is empty.
        padding: on both sides.
        *how: whether sizes are rounded up, whether the padding counts, and the divisor if it is given.
    """
    ceil, with_padding, divisor = how
    kernel = _three(kernel_size)
    like = grad_output.dtype, grad_output.device
    sides = zip(self.shape[-3:], kernel, _three(stride or kernel), _three(padding), strict=True)
    given = divisor is not None
    maps = [_windows(side, (bool(ceil), bool(with_padding)), given, like) for side in sides]
    return spread(grad_output / divisor if given else grad_output, maps, self)


def _three(values: Sizes | int) -> list[int]:
    values = [values] if isinstance(values, int) else list(values)
    return values * 3 if len(values) == 1 else values


@functools.lru_cache(maxsize=256)
def _windows(side: tuple[int, int, int, int], how: tuple[bool, bool], is_sum: bool, like: Like) -> AxisMap:
    size, kernel, stride, pad = side
    ceil, with_padding = how
    outputs = (size + 2 * pad - kernel + (stride - 1 if ceil else 0)) // stride + 1
    if ceil and (outputs - 1) * stride >= size + pad:
        outputs -= 1
    starts = np.arange(outputs) * stride - pad
    ends = np.minimum(starts + kernel, size + pad)
    inside = np.maximum(starts, 0), np.minimum(ends, size)
    counts = ends - starts if with_padding else inside[1] - inside[0]
    return _means(*inside, np.ones_like(counts) if is_sum else counts, size, like)


def largest_gradient(dims: int) -> Callable[..., Tensor]:
    """Return the gradient of a pooling by largest values, whose indices come last."""

    def gradient(grad_output: Tensor, self: Tensor, *rest: Any) -> Tensor:
        out = _into_planes(grad_output, rest[-1], self.shape, dims, accumulate=True)
        return laid_out_like(out, self)

    return gradient


def _into_planes(values: Tensor, indices: Tensor, shape: Sizes, dims: int, *, accumulate: bool) -> Tensor:
    """Put each value at its flat position of its plane, which the last dimensions span.

    Of several at one position the last one stays, or all are added. torch puts values in a fixed order
    while its deterministic algorithms are on.
    """
    planes, positions = math.prod(shape[:-dims]), math.prod(shape[-dims:])
    first = torch.arange(planes, device=values.device).unsqueeze(1) * positions
    index = indices.reshape(planes, math.prod(indices.shape[-dims:]))
    outside = (index < 0) | (index >= positions)
    flat = torch.where(outside, planes * positions, index + first)  # torch says that it is out of bounds
    exact = exact_dtype(values.dtype) if accumulate else values.dtype
    out = torch.zeros(planes * positions, dtype=exact, device=values.device)
    out.index_put_((flat.reshape(-1),), values.reshape(-1).to(exact), accumulate=accumulate)
    return out.reshape(tuple(shape)).to(values.dtype)


def unpool_2d(self: Tensor, indices: Tensor, output_size: Sizes) -> Tensor:
    """Put the values of planes at their positions in larger planes of zeros."""
    return _unpool(self, indices, output_size)


def unpool_3d(
    self: Tensor, indices: Tensor, output_size: Sizes, stride: Sizes = (), padding: Sizes = ()
) -> Tensor:
    """Put the values of volumes at their positions in larger volumes of zeros."""
    del stride, padding
    return _unpool(self, indices, output_size)


def _unpool(values: Tensor, indices: Tensor, output_size: Sizes) -> Tensor:
    if indices.shape != values.shape or indices.dtype != torch.int64:
        raise RuntimeError(
            f"expected int64 indices of shape {tuple(values.shape)}, and found {indices.dtype} indices of "
            f"shape {tuple(indices.shape)}"
        )
    dims = len(output_size)
    out = _into_planes(values, indices, (*values.shape[:-dims], *output_size), dims, accumulate=False)
    return laid_out_like(out, values)


KERNELS: Mapping[str, Callable[..., object]] = {
    "_adaptive_avg_pool2d_backward": adaptive_mean_gradient(2),
    "_adaptive_avg_pool3d_backward": adaptive_mean_gradient(3),
    "adaptive_avg_pool3d_backward": adaptive_mean_gradient(3),
    "avg_pool3d_backward": mean_gradient_3d,
    "adaptive_max_pool2d_backward": largest_gradient(2),
    "adaptive_max_pool3d_backward": largest_gradient(3),
    "fractional_max_pool2d_backward": largest_gradient(2),
    "fractional_max_pool3d_backward": largest_gradient(3),
    "max_pool3d_with_indices_backward": largest_gradient(3),
    "max_unpool2d": unpool_2d,
    "max_unpool3d": unpool_3d,
}
"""By name of the op; its form that writes into a given tensor is computed by the same function."""
