"""Losses of a class for each sample ("Losses of classes" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels.reductions import sum_over
from samebits.portable.ops.losses import MEAN, NONE, reduced

if TYPE_CHECKING:
    from torch import Tensor


@handles("aten::nll_loss_forward", "aten::nll_loss2d_forward")
def nll_loss_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Compute `aten::nll_loss_forward`, and for images: classes are dimension 1, or 0 for a single sample."""
    classes = min(1, self.dim() - 1)
    labels, counted = _labels(target, self.shape[classes], ignore_index)
    nothing = torch.zeros((), dtype=self.dtype)
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
    nothing = torch.zeros((), dtype=self.dtype)
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
        return torch.ones((), dtype=like.dtype).expand(labels.shape)
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
    """Return each value as the gradient of its own score, and minus their sum as that of the label's."""
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
    rows = torch.arange(lists.shape[0]).unsqueeze(1).expand_as(lists)
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
