"""Batch normalisation, in the forms that releases of torch have had ("Normalisation")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles, rounds_itself
from samebits.portable._tensors import as_dtype, raised
from samebits.portable.kernels import norms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    Mask = Sequence[bool]
    Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]
    Three = tuple[Tensor, Tensor, Tensor]

SECTION = "Normalization"


@handles("aten::_native_batch_norm_legit", "aten::native_batch_norm")
@rounds_itself
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Three:
    """Compute `aten::native_batch_norm` and `aten::_native_batch_norm_legit`."""
    plain = raised(input)
    channels_last = _has_channels_last(plain)
    x = _by_channels(plain, channels_last=channels_last)
    if not training:
        running_mean, running_var = _present(running_mean), _present(running_var)
        rstd = norms.reciprocal_deviation(raised(running_var), eps)
        out = _scaled(x, raised(running_mean), rstd, weight, bias)
        out = _restored(out, input.shape, channels_last=channels_last)
        return out.to(input.dtype), input.new_empty(0), input.new_empty(0)
    running, numbers = (running_mean, running_var), (eps, momentum)
    out, mean, rstd = norms.batch_norm(x, _optional(weight), _shift(x, bias), running, numbers)
    out = _restored(out, input.shape, channels_last=channels_last)
    dtype = _statistics_dtype(input, weight, running_mean)
    return as_dtype(out, input.dtype), as_dtype(mean, dtype), as_dtype(rstd, dtype)


@handles("aten::_native_batch_norm_legit.no_stats")
@rounds_itself
def no_stats(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Three:
    """Compute `aten::_native_batch_norm_legit.no_stats`."""
    return native_batch_norm(input, weight, bias, None, None, training, momentum, eps)


@handles("aten::_native_batch_norm_legit_no_training")
@rounds_itself
def no_training(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> Three:
    """Compute `aten::_native_batch_norm_legit_no_training`."""
    return native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


@handles("aten::_native_batch_norm_legit_functional")
@rounds_itself
def functional(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """Compute `aten::_native_batch_norm_legit_functional`: the updated statistics come last."""
    mean, variance = running_mean.clone(), running_var.clone()
    return (*native_batch_norm(input, weight, bias, mean, variance, training, momentum, eps), mean, variance)


@handles("aten::_batch_norm_with_update")
@rounds_itself
def with_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """Compute `aten::_batch_norm_with_update`."""
    results = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*results, torch.empty(0, dtype=torch.uint8, device=input.device))


@handles("aten::_batch_norm_no_update")
@rounds_itself
def without_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """Compute `aten::_batch_norm_no_update`."""
    return (
        *no_training(input, weight, bias, running_mean, running_var, momentum, eps),
        torch.empty(0, dtype=torch.uint8, device=input.device),
    )


@handles("aten::native_batch_norm_backward")
@rounds_itself
def native_batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Mask,
) -> Gradients:
    """Compute `aten::native_batch_norm_backward`."""
    plain = raised(input)
    channels_last = _has_channels_last(plain)
    x, gradient = (_by_channels(t, channels_last=channels_last) for t in (plain, raised(grad_out)))
    mean, rstd = _statistics(running_mean, running_var, save_mean, save_invstd, train=train, eps=eps)
    of_input, of_weight, of_bias = norms.batch_norm_gradient(
        gradient, x, (mean, rstd), _optional(weight), training=train, of_input=output_mask[0]
    )
    if of_input is not None:
        of_input = as_dtype(_restored(of_input, input.shape, channels_last=channels_last), input.dtype)
    dtype = input.dtype if weight is None else weight.dtype
    return (
        of_input,
        as_dtype(of_weight, dtype) if output_mask[1] else None,
        as_dtype(of_bias, dtype) if output_mask[2] else None,
    )


@handles("aten::batch_norm_backward")
@rounds_itself
def batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_var: Tensor | None,
    update: bool,
    eps: float,
    output_mask: Mask,
    reserve: Tensor,
) -> Gradients:
    """Compute `aten::batch_norm_backward`."""
    return native_batch_norm_backward(
        grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask
    )


def _has_channels_last(x: Tensor) -> bool:
    """Tell whether channels are last in the memory of a tensor of more than two dimensions."""
    return x.dim() > 2 and not x.is_contiguous() and x.movedim(1, -1).is_contiguous()


def _by_channels(x: Tensor, *, channels_last: bool) -> Tensor:
    """Return a tensor as contiguous (outer, channels, inner); inner is 1 if channels are last in memory."""
    if channels_last:
        return x.movedim(1, -1).contiguous().view(-1, x.shape[1], 1)
    inner = x.numel() // max(x.shape[0] * x.shape[1], 1)
    return x.contiguous().view(x.shape[0], x.shape[1], inner)


def _restored(out: Tensor, shape: torch.Size, *, channels_last: bool) -> Tensor:
    """Return the result, laid out by `_by_channels`, in the shape and the memory order of the input."""
    if not channels_last:
        return out.view(shape)
    return out.view([shape[0], *shape[2:], shape[1]]).movedim(-1, 1)


def _scaled(x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    scale = rstd if weight is None else rstd * raised(weight)
    return norms.scale_channels(x, mean.contiguous(), scale.contiguous(), _shift(x, bias))


def _shift(x: Tensor, bias: Tensor | None) -> Tensor:
    """Return the bias, or a zero for each channel."""
    return x.new_zeros(x.shape[1]) if bias is None else raised(bias).contiguous()


def _optional(x: Tensor | None) -> Tensor | None:
    return None if x is None else raised(x).contiguous()


def _statistics(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    *,
    train: bool,
    eps: float,
) -> tuple[Tensor, Tensor]:
    if train:
        return raised(_present(save_mean)).contiguous(), raised(_present(save_invstd)).contiguous()
    rstd = norms.reciprocal_deviation(raised(_present(running_var)), eps)
    return raised(_present(running_mean)).contiguous(), rstd.contiguous()


def _present(statistic: Tensor | None) -> Tensor:
    if statistic is None:
        raise RuntimeError("batch norm: Expected running_mean and running_var when not training")
    return statistic


def _statistics_dtype(x: Tensor, weight: Tensor | None, running: Tensor | None) -> torch.dtype:
    for parameter in (weight, running):
        if parameter is not None:
            return parameter.dtype
    return x.dtype
