"""Normalisation layers ("Normalisation" in docs/reference/portable-numerics.md).

Tensors are float32 or float64, one dtype in a call.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from samebits.portable.backends import backend_of
from samebits.portable.kernels.elementwise import sqrt
from samebits.portable.kernels.reductions import mean_over, sum_deviations_over

if TYPE_CHECKING:
    from torch import Tensor


def layer_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, rows: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise every row of a contiguous tensor.

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
    backend_of(x).layer_norm(x, weight, bias, eps, (out, mean, rstd))
    return out, mean, rstd


def layer_norm_gradient(
    gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None
) -> Tensor:
    """Return the gradient of x; all contiguous, `mean` and `rstd` as `layer_norm` returned them."""
    out = torch.empty_like(x)
    if x.numel():
        backend_of(x).layer_norm_gradient(gradient, x, mean, rstd, weight, out)
    return out


def layer_norm_weight_gradients(
    gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of the weight and of the bias, one value for each column; arguments as above."""
    rows = mean.numel()
    width = x.numel() // max(rows, 1)
    of_weight, of_bias = x.new_empty(width), x.new_empty(width)
    if not x.numel():
        return of_weight.zero_(), of_bias.zero_()
    backend_of(x).layer_norm_weights(gradient, x, mean, rstd, (of_weight, of_bias))
    return of_weight, of_bias


def statistics(x: Tensor, dims: list[int]) -> tuple[Tensor, Tensor]:
    """Return the mean over some dimensions, and the sum of squared deviations from it."""
    mean = mean_over(x, dims)
    return mean, sum_deviations_over(x, mean, dims)


def reciprocal_deviation(variance: Tensor, eps: float) -> Tensor:
    """Return 1 / sqrt(variance + eps), computed in float64 and rounded at the end."""
    return sqrt(variance.to(torch.float64) + eps).reciprocal_().to(variance.dtype)


def group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise every group of channels of every sample.

    Args:
        x: (samples, channels, positions), contiguous.
        weight: contiguous, one value for each channel; None for 1.
        bias: likewise; None for 0.
        groups: how many.
        eps: added to the variance.

    Returns:
        the result, and the mean and 1 / sqrt(variance + eps) of every group, (samples, groups).
    """
    out, mean, rstd = (
        torch.empty_like(x),
        x.new_empty((x.shape[0], groups)),
        x.new_empty((x.shape[0], groups)),
    )
    backend_of(x).group_norm(x, weight, bias, eps, (out, mean, rstd))
    return out, mean, rstd


def group_norm_gradient(
    gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x, weight and bias; arguments as `group_norm` takes and returns them."""
    out, of_weight, of_bias = torch.empty_like(x), x.new_empty(x.shape[1]), x.new_empty(x.shape[1])
    backend_of(x).group_norm_gradient(gradient, x, mean, rstd, weight, (out, of_weight, of_bias))
    return out, of_weight, of_bias


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor,
    running: tuple[Tensor | None, Tensor | None],
    numbers: tuple[float, float],
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise every channel with its own statistics, and update the running ones.

    Args:
        x: (outer, channels, inner), contiguous.
        weight: contiguous, one value for each channel; None for 1.
        bias: likewise.
        running: mean and variance, None for one that is not updated.
        numbers: eps and momentum.

    Returns:
        the result, and the mean and 1 / sqrt(variance + eps) of every channel.
    """
    eps, momentum = numbers
    if x.numel():
        out = torch.empty_like(x), x.new_empty(x.shape[1]), x.new_empty(x.shape[1])
        if backend_of(x).batch_norm(x, weight, bias, running, numbers, out):
            return out
    mean, total = statistics(x, [0, 2])
    count = x.shape[0] * x.shape[2]
    rstd = reciprocal_deviation(total.to(torch.float64) / count, eps).to(total.dtype)
    for statistic, value in zip(running, (mean, total / (count - 1)), strict=True):
        if statistic is not None:
            statistic.copy_(value * momentum + statistic.to(mean.dtype) * (1 - momentum))
    return scale_channels(x, mean, rstd if weight is None else rstd * weight, bias), mean, rstd


def scale_channels(x: Tensor, mean: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Return fma(x - mean, scale, shift), each of the three having one value for each channel.

    Args:
        x: (outer, channels, inner), contiguous.
        mean: contiguous, like the other two.
        scale: the factor.
        shift: what is added.
    """
    out = torch.empty_like(x)
    if x.numel():
        backend_of(x).scale_channels(x, mean, scale, shift, out)
    return out


def batch_norm_gradient(
    gradient: Tensor,
    x: Tensor,
    statistics: tuple[Tensor, Tensor],
    weight: Tensor | None,
    *,
    training: bool,
    of_input: bool = True,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Return the gradients of x (None unless `of_input`), of the weight and of the bias.

    Args:
        gradient: (outer, channels, inner), contiguous.
        x: likewise.
        statistics: mean and 1 / sqrt(variance + eps), contiguous, one value for each channel.
        weight: likewise; None for 1.
        training: whether the statistics were computed from x.
        of_input: whether the gradient of x is wanted.
    """
    out = torch.empty_like(x) if of_input else None
    gradients = out, torch.empty_like(statistics[1]), torch.empty_like(statistics[1])
    backend_of(x).batch_norm_gradient(gradient, x, statistics, weight, gradients, training=training)
    return gradients
