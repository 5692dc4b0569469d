"""Normalisation layers ("Normalisation" in docs/portable-numerics.md).

Tensors are float32 or float64, one dtype in a call.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from samebits.portable.arrays import as_array, as_tensor
from samebits.portable.kernels.reductions import (
    mean_over,
    sum_deviations_over,
)
from samebits.portable.kernels.root import sqrt
from samebits.portable.native import load

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.reference.fma import Array


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

        found = reference(as_array(x.reshape(rows, width)), _numpy(weight), _numpy(bias), eps)
        return _fill(out, found[0]), _fill(mean, found[1]), _fill(rstd, found[2])
    words = (x.dtype == torch.float64, False, x.data_ptr(), 0, _address(weight), _address(bias))
    kernels.call(
        "layer_norm", (*words, out.data_ptr(), mean.data_ptr(), rstd.data_ptr(), rows, width), (eps,)
    )
    return out, mean, rstd


def layer_norm_gradient(
    gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None
) -> Tensor:
    """The gradient of x; all contiguous, `mean` and `rstd` as `layer_norm` gave them."""
    out, rows = torch.empty_like(x), mean.numel()
    if not x.numel():
        return out
    width = x.numel() // rows
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.norms import layer_norm_gradient as reference

        matrices = [as_array(t.reshape(rows, width)) for t in (gradient, x)]
        columns = [as_array(t.view(-1)) for t in (mean, rstd)]
        found = reference(matrices[0], matrices[1], columns[0], columns[1], _numpy(weight))
        return _fill(out, found)
    words = (x.dtype == torch.float64, True, x.data_ptr(), gradient.data_ptr(), _address(weight), 0)
    kernels.call(
        "layer_norm", (*words, out.data_ptr(), mean.data_ptr(), rstd.data_ptr(), rows, width), (0.0,)
    )
    return out


def layer_norm_weight_gradients(
    gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of the weight and of the bias, one value for each column; arguments as above."""
    rows = mean.numel()
    width = x.numel() // max(rows, 1)
    of_weight, of_bias = x.new_empty(width), x.new_empty(width)
    if not x.numel():
        return of_weight.zero_(), of_bias.zero_()
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.norms import layer_norm_weight_gradients as reference

        matrices = [as_array(t.reshape(rows, width)) for t in (gradient, x)]
        columns = [as_array(t.view(-1)) for t in (mean, rstd)]
        found = reference(matrices[0], matrices[1], columns[0], columns[1])
        return _fill(of_weight, found[0]), _fill(of_bias, found[1])
    addresses = (t.data_ptr() for t in (x, gradient, mean, rstd, of_weight, of_bias))
    kernels.call("layer_norm_weights", (x.dtype == torch.float64, *addresses, rows, width))
    return of_weight, of_bias


def statistics(x: Tensor, dims: list[int]) -> tuple[Tensor, Tensor]:
    """The mean over some dimensions, and the sum of squared deviations from it."""
    mean = mean_over(x, dims)
    return mean, sum_deviations_over(x, mean, dims)


def reciprocal_deviation(variance: Tensor, eps: float) -> Tensor:
    """1 / sqrt(variance + eps), in float64 and rounded at the end."""
    return sqrt(variance.to(torch.float64) + eps).reciprocal_().to(variance.dtype)


def group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalises every group of channels of every sample.

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
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.norms import group_norm as reference

        found = reference(as_array(x), _numpy(weight), _numpy(bias), groups, eps)
        return _fill(out, found[0]), _fill(mean, found[1]), _fill(rstd, found[2])
    sizes = (x.shape[0], groups, x.shape[1] // groups, x.shape[2])
    addresses = map(_address, (x, weight, bias, out, mean, rstd))
    kernels.call("group_norm", (x.dtype == torch.float64, *addresses, *sizes), (eps,))
    return out, mean, rstd


def group_norm_gradient(
    gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of x, of the weight and of the bias; arguments as `group_norm` takes and gives them."""
    out, of_weight, of_bias = torch.empty_like(x), x.new_empty(x.shape[1]), x.new_empty(x.shape[1])
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.norms import group_norm_gradient as reference

        arrays = [as_array(t) for t in (gradient, x, mean, rstd)]
        found = reference(arrays[0], arrays[1], arrays[2], arrays[3], _numpy(weight))
        return _fill(out, found[0]), _fill(of_weight, found[1]), _fill(of_bias, found[2])
    addresses = map(_address, (x, gradient, weight, mean, rstd, out, of_weight, of_bias))
    groups = mean.shape[1]
    sizes = (x.shape[0], groups, x.shape[1] // groups, x.shape[2])
    kernels.call("group_norm_gradient", (x.dtype == torch.float64, *addresses, *sizes))
    return out, of_weight, of_bias


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor,
    running: tuple[Tensor | None, Tensor | None],
    numbers: tuple[float, float],
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalises every channel with its own statistics; the running ones are updated.

    Args:
        x: (outer, channels, inner), contiguous.
        weight: contiguous, one value for each channel; None for 1.
        bias: likewise.
        running: mean and variance, None for those that are not kept.
        numbers: eps and momentum.

    Returns:
        the result, and the mean and 1 / sqrt(variance + eps) of every channel.
    """
    eps, momentum = numbers
    kernels = load()
    kept_plainly = all(t is None or (t.is_contiguous() and t.dtype == x.dtype) for t in running)
    if kernels is not None and kept_plainly and x.numel():
        out, mean, rstd = torch.empty_like(x), x.new_empty(x.shape[1]), x.new_empty(x.shape[1])
        addresses = map(_address, (x, weight, bias, *running, out, mean, rstd))
        words = (x.dtype == torch.float64, *addresses, *x.shape)
        kernels.call("batch_norm", words, (eps, momentum, 1 - momentum))
        return out, mean, rstd
    mean, total = statistics(x, [0, 2])
    count = x.shape[0] * x.shape[2]
    rstd = reciprocal_deviation(total.to(torch.float64) / count, eps).to(total.dtype)
    for kept, value in zip(running, (mean, total / (count - 1)), strict=True):
        if kept is not None:
            kept.copy_(value * momentum + kept.to(mean.dtype) * (1 - momentum))
    return scale_channels(x, mean, rstd if weight is None else rstd * weight, bias), mean, rstd


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

        return _fill(
            out,
            reference(as_array(x), as_array(mean), as_array(scale), as_array(shift)),
        )
    if x.numel():
        addresses = (t.data_ptr() for t in (x, mean, scale, shift, out))
        kernels.call("channel_norm", (x.dtype == torch.float64, *addresses, *x.shape))
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
    """The gradients of x (None unless `of_input`), of the weight and of the bias.

    Args:
        gradient: (outer, channels, inner), contiguous.
        x: likewise.
        statistics: mean and 1 / sqrt(variance + eps), contiguous, one value for each channel.
        weight: likewise; None for 1.
        training: the statistics are those of x.
        of_input: whether the gradient of x is wanted.
    """
    kernels = load()
    if kernels is None or not x.numel():
        from samebits.portable.reference.norms import batch_norm_gradient as reference

        mean, rstd = (as_array(t) for t in statistics)
        found = reference(as_array(gradient), as_array(x), (mean, rstd), _numpy(weight), training=training)
        results = [as_tensor(values) for values in found]
        return (results[0] if of_input else None), results[1], results[2]
    out = torch.empty_like(x) if of_input else None
    of_weight, of_bias = torch.empty_like(statistics[1]), torch.empty_like(statistics[1])
    addresses = map(_address, (x, gradient, weight, *statistics, out, of_weight, of_bias))
    kernels.call("batch_norm_gradient", (x.dtype == torch.float64, training, *addresses, *x.shape))
    return out, of_weight, of_bias


def _numpy(x: Tensor | None) -> Array | None:
    return None if x is None else as_array(x)


def _address(x: Tensor | None) -> int:
    return 0 if x is None else x.data_ptr()


def _fill(out: Tensor, values: Array) -> Tensor:
    return out.copy_(as_tensor(values).view(out.shape))
