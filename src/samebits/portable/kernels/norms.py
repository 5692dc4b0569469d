"""Normalisation layers ("Normalisation" in docs/portable-numerics.md).

Tensors are float32 or float64, one dtype in a call.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from samebits.portable.kernels.reductions import (
    mean_over,
    sum_cross_over,
    sum_deviations_over,
    sum_over,
    sum_products_over,
)
from samebits.portable.kernels.root import sqrt
from samebits.portable.native import load

if TYPE_CHECKING:
    from torch import Tensor


def layer_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, rows: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalises every row of a contiguous tensor.

    Args:
        x: `rows` rows, one after the other.
        weight: contiguous, one value for each column; None for 1.
        bias: likewise; None for 0.
        rows: how many there are.
        eps: added to the variance.

    Returns:
        the result, and the mean and 1 / sqrt(variance + eps) of every row.
    """
    out, mean, rstd = torch.empty_like(x), x.new_empty(rows), x.new_empty(rows)
    if not x.numel():
        return out, mean.fill_(0 if rows else math.nan), rstd.fill_(math.nan)
    width = x.numel() // rows
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.norms import layer_norm as reference

        results = reference(x.reshape(rows, width).numpy(), _numpy(weight), _numpy(bias), eps)
        return _filled((out, mean, rstd), results)
    words = (x.dtype == torch.float64, False, x.data_ptr(), 0, _address(weight), _address(bias))
    kernels.call("layer_norm", (*words, out.data_ptr(), mean.data_ptr(), rstd.data_ptr(), rows, width), (eps,))
    return out, mean, rstd


def layer_norm_gradient(gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None) -> Tensor:
    """The gradient of x; all contiguous, `mean` and `rstd` as `layer_norm` gave them."""
    out, rows = torch.empty_like(x), mean.numel()
    if not x.numel():
        return out
    width = x.numel() // rows
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.norms import layer_norm_gradient as reference

        matrices = (t.reshape(rows, width).numpy() for t in (gradient, x))
        return _filled((out,), (reference(*matrices, mean.view(-1).numpy(), rstd.view(-1).numpy(), _numpy(weight)),))[0]
    words = (x.dtype == torch.float64, True, x.data_ptr(), gradient.data_ptr(), _address(weight), 0)
    kernels.call("layer_norm", (*words, out.data_ptr(), mean.data_ptr(), rstd.data_ptr(), rows, width), (0.0,))
    return out


def layer_norm_weight_gradients(gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of the weight and of the bias, one value for each column; arguments as above."""
    rows = mean.numel()
    width = x.numel() // max(rows, 1)
    of_weight, of_bias = x.new_zeros(width), x.new_zeros(width)
    if not x.numel():
        return of_weight, of_bias
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.norms import layer_norm_weight_gradients as reference

        matrices = (t.reshape(rows, width).numpy() for t in (gradient, x))
        return _filled((of_weight, of_bias), reference(*matrices, mean.view(-1).numpy(), rstd.view(-1).numpy()))
    addresses = (t.data_ptr() for t in (x, gradient, mean, rstd, of_weight, of_bias))
    kernels.call("layer_norm_weights", (x.dtype == torch.float64, *addresses, rows, width))
    return of_weight, of_bias


def statistics(x: Tensor, dims: list[int]) -> tuple[Tensor, Tensor]:
    """The mean over some dimensions, and the sum of squared deviations from it."""
    mean = mean_over(x, dims)
    return mean, sum_deviations_over(x, mean, dims)


def reciprocal_deviation(variance: Tensor, eps: float) -> Tensor:
    """1 / sqrt(variance + eps)."""
    return sqrt(variance + eps).reciprocal_()


def scale_channels(x: Tensor, mean: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """fma(x - mean, scale, shift), each of the three having one value for each channel.

    Args:
        x: (outer, channels, inner), contiguous.
        mean: contiguous, like the other two.
        scale: the factor.
        shift: what is added.
    """
    out = torch.empty_like(x)
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.norms import scale_channels as reference

        return _filled((out,), (reference(x.numpy(), *(t.numpy() for t in (mean, scale, shift))),))[0]
    if x.numel():
        given = (t.data_ptr() for t in (mean, scale))
        words = (x.dtype == torch.float64, False, x.data_ptr(), 0, *given, 0, shift.data_ptr(), 0)
        kernels.call("channel_norm", (*words, out.data_ptr(), *x.shape))
    return out


def channels_gradient(gradient: Tensor, x: Tensor, terms: tuple[Tensor, Tensor, Tensor, Tensor, Tensor]) -> Tensor:
    """fma(mean - x, slope, gradient * weight - shift) * scale.

    Args:
        gradient: (outer, channels, inner), contiguous.
        x: likewise.
        terms: mean, slope, weight, shift and scale: contiguous, one value for each channel.
    """
    out = torch.empty_like(x)
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.norms import channels_gradient as reference

        return _filled((out,), (reference(gradient.numpy(), x.numpy(), *(t.numpy() for t in terms)),))[0]
    if x.numel():
        addresses = (t.data_ptr() for t in (x, gradient, *terms, out))
        kernels.call("channel_norm", (x.dtype == torch.float64, True, *addresses, *x.shape))
    return out


def gradient_sums(gradient: Tensor, x: Tensor, mean: Tensor, dims: list[int]) -> tuple[Tensor, Tensor]:
    """The sum of the gradient over some dimensions, and that of gradient * (x - mean)."""
    return sum_over(gradient, dims), sum_cross_over(x, mean, gradient, dims)


def weighted_sums(values: Tensor, weight: Tensor) -> Tensor:
    """The sum of values * weight over the last dimension."""
    return sum_products_over(values, weight.expand_as(values), -1)


def _numpy(x: Tensor | None) -> object:
    return None if x is None else x.numpy()


def _address(x: Tensor | None) -> int:
    return 0 if x is None else x.data_ptr()


def _filled(outs: tuple[Tensor, ...], results: tuple[object, ...]) -> tuple[Tensor, ...]:
    return tuple(
        out.copy_(torch.from_numpy(result).view(out.shape)) for out, result in zip(outs, results, strict=True)
    )
