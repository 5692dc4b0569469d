"""Loss functions, of values and of classes."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable._registry import handles, rounding_once, rounds_itself
from samebits.portable._tensors import LOW_PRECISION, as_dtype
from samebits.portable.kernels.activations import common_shape, pointwise
from samebits.portable.kernels.reductions import mean_over, sum_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from samebits.portable._registry import Handler

NONE, MEAN, SUM = range(3)
"""The numbers by which torch's ops name the reductions."""


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


@handles("aten::nll_loss_forward", "aten::nll_loss2d_forward")
def nll_loss_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Compute `aten::nll_loss_forward`, and for images: classes are dimension 1, or 0 for a single sample."""
    classes = min(1, self.dim() - 1)
    labels, counted = _labels(target, self.shape[classes], ignore_index)
    nothing = torch.zeros((), dtype=self.dtype, device=self.device)
    weights = torch.where(counted, _weight_of(weight, labels, self), nothing)
    picked = torch.gather(self, classes, labels.unsqueeze(classes)).squeeze(classes)
    values = torch.where(counted, torch.neg(torch.mul(weights, picked)), nothing)
    if reduction == NONE:
        return values, nothing
    total, total_weight = sum_over(values, None), sum_over(weights, None)
    return (torch.div(total, total_weight) if reduction == MEAN else total), total_weight


@handles("aten::nll_loss_backward", "aten::nll_loss2d_backward")
def nll_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """Compute `aten::nll_loss_backward`, and for images."""
    classes = min(1, self.dim() - 1)
    labels, counted = _labels(target, self.shape[classes], ignore_index)
    grad = torch.div(grad_output, total_weight) if reduction == MEAN else grad_output
    nothing = torch.zeros((), dtype=self.dtype, device=self.device)
    values = torch.where(counted, torch.neg(torch.mul(_weight_of(weight, labels, self), grad)), nothing)
    out = torch.zeros_like(self, memory_format=torch.contiguous_format)
    return out.scatter_(classes, labels.unsqueeze(classes), values.unsqueeze(classes))


def _labels(target: Tensor, classes: int, ignore_index: int) -> tuple[Tensor, Tensor]:
    """Return the labels, with 0 for those to ignore, and which of them count."""
    counted = target != ignore_index
    labels = torch.where(counted, target, 0).long()
    outside = (labels < 0) | (labels >= classes)
    if bool((outside & counted).any()):
        raise IndexError(f"Target {int(labels[outside][0])} is out of bounds.")
    return labels, counted


def _weight_of(weight: Tensor | None, labels: Tensor, like: Tensor) -> Tensor:
    if weight is None:
        return torch.ones((), dtype=like.dtype, device=like.device).expand(labels.shape)
    return weight[labels]


@handles("aten::multi_margin_loss")
def multi_margin_loss(
    self: Tensor,
    target: Tensor,
    p: float = 1,
    margin: float = 1,
    weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Tensor:
    """Compute `aten::multi_margin_loss`."""
    scores, labels = _samples(self, target)
    values = _margins(scores, labels, margin)
    values = values if p == 1 else torch.mul(values, values)
    values = values if weight is None else torch.mul(values, weight[labels].unsqueeze(1))
    losses = torch.div(sum_over(values, 1), scores.shape[1])
    return reduced(losses.view(target.shape), reduction)


@handles("aten::multi_margin_loss_backward")
def multi_margin_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    p: float,
    margin: float,
    weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Tensor:
    """Compute `aten::multi_margin_loss_backward`."""
    scores, labels = _samples(self, target)
    margins = _margins(scores, labels, margin)
    values = (margins > 0).to(self.dtype) if p == 1 else torch.mul(margins, 2)
    values = values if weight is None else torch.mul(values, weight[labels].unsqueeze(1))
    return _to_both(values, labels, _sample_gradient(grad_output, scores, reduction)).view(self.shape)


def _rows(tensor: Tensor) -> Tensor:
    """Return the tensor as one row if it has none."""
    return tensor if tensor.dim() > 1 else tensor.reshape(1, -1)


def _samples(self: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    scores, labels = _rows(self), target.reshape(-1)
    if bool(((labels < 0) | (labels >= scores.shape[1])).any()):
        raise RuntimeError("target out of range")
    return scores, labels


def _margins(scores: Tensor, labels: Tensor, margin: float) -> Tensor:
    """Return (margin - score of the label) + score where that is above 0; 0 for the label itself."""
    column = labels.unsqueeze(1)
    z = torch.add(torch.rsub(torch.gather(scores, 1, column), margin), scores)
    return torch.where(torch.le(z, 0), 0.0, z).scatter_(1, column, 0.0)


def _sample_gradient(grad_output: Tensor, scores: Tensor, reduction: int) -> Tensor:
    """Return the gradient of each sample's sum, as a column: / classes, and / samples for a mean."""
    samples = scores.shape[0] if reduction == MEAN else 1
    return torch.div(grad_output.reshape(-1, 1), samples * scores.shape[1])


def _to_both(values: Tensor, labels: Tensor, grad: Tensor) -> Tensor:
    """Return each value as the gradient of its score, and minus their sum as the gradient of the label's."""
    total = torch.neg(sum_over(values, 1, keepdim=True))
    return torch.mul(values.scatter(1, labels.unsqueeze(1), total), grad)


@handles("aten::multilabel_margin_loss_forward")
def multilabel_margin_loss_forward(self: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    """Compute `aten::multilabel_margin_loss_forward`."""
    scores = _rows(self)
    _, is_target = _label_lists(scores, target)
    z = _pair_margins(scores, target)
    losses = torch.div(sum_over(z, (1, 2)), max(scores.shape[1], 1))
    shape = target.shape[:-1]
    return reduced(losses.view(shape), reduction), is_target.to(self.dtype).view(target.shape)


@handles("aten::multilabel_margin_loss_backward")
def multilabel_margin_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    reduction: int,
    is_target: Tensor,
) -> Tensor:
    """Compute `aten::multilabel_margin_loss_backward`."""
    scores = _rows(self)
    labels, _ = _label_lists(scores, target)
    active = _pair_margins(scores, target) > 0
    counts = torch.sum(active, 1).scatter_add_(1, labels, torch.neg(torch.sum(active, 2)))
    grads = counts.to(self.dtype)
    return torch.mul(grads, _sample_gradient(grad_output, scores, reduction)).view(self.shape)


def _label_lists(scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the labels of each sample up to the first -1, 0 after it, and which classes are labels."""
    lists = _rows(target)
    listed = _listed(lists)
    if bool((listed & ((lists < -1) | (lists >= scores.shape[1]))).any()):
        raise RuntimeError("target out of range")
    labels = torch.where(listed, lists, 0)
    is_target = torch.zeros_like(lists, dtype=torch.bool)
    rows = torch.arange(lists.shape[0], device=lists.device).unsqueeze(1).expand_as(lists)
    is_target[rows[listed], labels[listed]] = True
    return labels, is_target


def _listed(lists: Tensor) -> Tensor:
    return torch.cumsum((lists < 0).to(torch.int64), 1) == 0


def _pair_margins(scores: Tensor, target: Tensor) -> Tensor:
    """Return 1 - x[label] + x[d] for each listed label and each d that is no label, where above 0; else 0."""
    labels, is_target = _label_lists(scores, target)
    listed = _listed(_rows(target))
    z = torch.add(torch.rsub(torch.gather(scores, 1, labels), 1).unsqueeze(2), scores.unsqueeze(1))
    counts = listed.unsqueeze(2) & ~is_target.unsqueeze(1) & ~torch.le(z, 0)
    return torch.where(counts, z, 0.0)
