"""Losses of one value for each element ("Losses" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable._registry import LOW_PRECISION, as_dtype, handles, rounding_once, rounds_itself
from samebits.portable.kernels.activations import common_shape, pointwise
from samebits.portable.kernels.reductions import mean_over, sum_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from samebits.portable._registry import Handler

NONE, MEAN, SUM = range(3)
"""What torch's ops call the reductions."""


def of_dtype(argument: int) -> Callable[[Handler], Handler]:
    """Return a decorator for a loss whose value has the dtype of one argument, whatever torch promotes to.

    Args:
        argument: position of that argument.
    """

    def decorate(handler: Handler) -> Handler:
        low = rounding_once(handler)

        @rounds_itself
        @functools.wraps(handler)
        def handle(self: Tensor, target: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            first, second = self.dtype, target.dtype
            if first is second and first not in LOW_PRECISION:
                return handler(self, target, *args, **kwargs)  # type: ignore[no-any-return]
            compute = low if {first, second} & LOW_PRECISION else handler
            return as_dtype(compute(self, target, *args, **kwargs), (first, second)[argument])

        return handle

    return decorate


def reduced(values: Tensor, reduction: int) -> Tensor:
    """Return the values, their mean, or their sum.

    Args:
        values: one for each element or sample.
        reduction: `NONE`, `MEAN` or `SUM`.
    """
    if reduction == NONE:
        return values
    return mean_over(values, None) if reduction == MEAN else sum_over(values, None)


@handles("aten::mse_loss")
def mse_loss(self: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """Compute `aten::mse_loss`."""
    return reduced(pointwise("mse", *_pair(self, target)), reduction)


@handles("aten::mse_loss_backward")
def mse_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    """Compute `aten::mse_loss_backward`."""
    params = (_factor(self, target, reduction, 2),)
    return pointwise("mse_backward", *_pair(self, target, grad_output), params=params)


@handles("aten::smooth_l1_loss")
def smooth_l1_loss(self: Tensor, target: Tensor, reduction: int = MEAN, beta: float = 1.0) -> Tensor:
    """Compute `aten::smooth_l1_loss`."""
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return reduced(pointwise("smooth_l1", *_pair(self, target), params=(beta,)), reduction)


@handles("aten::smooth_l1_loss_backward")
def smooth_l1_loss_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, beta: float
) -> Tensor:
    """Compute `aten::smooth_l1_loss_backward`."""
    params = (_factor(self, target, reduction), beta)
    return pointwise("smooth_l1_backward", *_pair(self, target, grad_output), params=params)


@handles("aten::huber_loss")
@of_dtype(0)
def huber_loss(self: Tensor, target: Tensor, reduction: int = MEAN, delta: float = 1.0) -> Tensor:
    """Compute `aten::huber_loss`."""
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    return reduced(pointwise("huber", *_pair(self, target), params=(delta,)), reduction)


@handles("aten::huber_loss_backward")
def huber_loss_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, delta: float
) -> Tensor:
    """Compute `aten::huber_loss_backward`."""
    params = (_factor(self, target, reduction), delta)
    return pointwise("huber_backward", *_pair(self, target, grad_output), params=params)


@handles("aten::binary_cross_entropy")
def binary_cross_entropy(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    """Compute `aten::binary_cross_entropy`: logarithms are at least -100."""
    if not bool(((self >= 0) & (self <= 1)).all()):
        raise RuntimeError("all elements of input should be between 0 and 1")
    return reduced(_weighted(pointwise("binary_cross_entropy", self, target), weight), reduction)


@handles("aten::binary_cross_entropy_backward")
def binary_cross_entropy_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    """Compute `aten::binary_cross_entropy_backward`."""
    params = (_factor(self, target, reduction),)
    inputs = _pair(self, target, grad_output)
    return _weighted(pointwise("binary_cross_entropy_backward", *inputs, params=params), weight)


@handles("aten::binary_cross_entropy_with_logits")
@of_dtype(1)
def binary_cross_entropy_with_logits(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Tensor:
    """Compute `aten::binary_cross_entropy_with_logits`."""
    inputs = _pair(self, target, pos_weight)
    values = pointwise("with_logits" if pos_weight is None else "with_logits_pos", *inputs)
    return reduced(_weighted(values, weight), reduction)


@handles("aten::soft_margin_loss")
@of_dtype(0)
def soft_margin_loss(self: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """Compute `aten::soft_margin_loss`."""
    return reduced(pointwise("soft_margin", *_pair(self, target)), reduction)


@handles("aten::soft_margin_loss_backward")
def soft_margin_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    """Compute `aten::soft_margin_loss_backward`."""
    params = (_factor(self, target, reduction),)
    return pointwise("soft_margin_backward", *_pair(self, target, grad_output), params=params)


def _pair(self: Tensor, target: Tensor, third: Tensor | None = None) -> tuple[Tensor, ...]:
    """Return the inputs in one dtype, as torch promotes them."""
    inputs = (self, target) if third is None else (self, target, third)
    dtype = self.dtype
    if target.dtype is not dtype:
        dtype = torch.promote_types(dtype, target.dtype)
    return inputs if all(one.dtype == dtype for one in inputs) else tuple(one.to(dtype) for one in inputs)


def _factor(self: Tensor, target: Tensor, reduction: int, numerator: int = 1) -> float:
    """Return the factor of each element's gradient, computed in float64."""
    if reduction != MEAN:
        return float(numerator)
    shape = common_shape(self.shape, target.shape)
    count = math.prod(shape)
    return numerator / count if count else 0.0


def _weighted(values: Tensor, weight: Tensor | None) -> Tensor:
    return values if weight is None else torch.mul(values, weight)
