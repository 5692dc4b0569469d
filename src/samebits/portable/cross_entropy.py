"""Cross entropy with class weights and label smoothing, whose composition in torch has two formulas.

The composition asks `isTensorSubclassLike`, which says yes to every tensor while a dispatch mode is active
(ATen/native/LossNLL.cpp, ATen/TensorSubclassLikeUtils.h, 2.13.0). Both divide by a sum of the same weights,
and one of them has zeros in it for what is ignored. With registered kernels there need not be a mode, so the
bits would depend on whether the script has entered one. It is always the formula of modes here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

NAME = "cross_entropy_loss"
_MEAN = 1


def cross_entropy(otherwise: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
    """Compute `aten::cross_entropy_loss`.

    Args:
        otherwise: torch's composition of these arguments, for all but the mean with weights and smoothing.
        *args: of the op.
        **kwargs: those by name.
    """
    scores, target, weight, reduction, ignored, smoothing = _arguments(*args, **kwargs)
    has_classes = scores.shape != target.shape  # else they are probabilities
    if weight is None or smoothing <= 0 or reduction != _MEAN or not has_classes:
        return otherwise()
    of_classes = 1 if scores.dim() > 1 else 0
    log_shares = torch.log_softmax(scores, of_classes, scores.dtype)
    of_target = torch.ops.aten.nll_loss_nd(log_shares, target, weight, reduction, ignored)
    of_all = _smooth_loss(log_shares, of_classes, target == ignored, target, weight)
    scaled = torch.ops.aten.mul.Scalar
    return scaled(of_target, 1 - smoothing) + scaled(of_all, smoothing / scores.size(of_classes))


def _arguments(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = _MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor | None, int, int, float]:
    return self, target, weight, reduction, ignore_index, label_smoothing


def _smooth_loss(
    log_shares: Tensor, of_classes: int, ignored: Tensor, target: Tensor, weight: Tensor
) -> Tensor:
    """Return the mean of the loss with all classes as the target, by weights."""
    shape = [1] * log_shares.dim()
    shape[of_classes] = weight.size(0)
    losses = (log_shares * weight.view(shape)).sum(of_classes).neg().masked_fill_(ignored, 0.0)
    weights = weight.gather(0, target.masked_fill(ignored, 0).flatten())
    return losses.sum() / weights.masked_fill_(ignored.flatten(), 0).sum()
