"""Steps of optimizers over lists of tensors ("Optimizers" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from samebits.portable.backends import backend_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

Group = tuple["Tensor", ...]


class AdamRule(NamedTuple):
    """The numbers of a step of Adam, the same for every tensor.

    Attributes:
        shrink: factor of the parameter, before all else.
        decay: factor of the parameter that is added to the gradient, 0 for nothing.
        weight: of the new gradient in the first moment.
        keep, gain: of the old second moment, and of the new square.
        eps: added to the divisor.
        amsgrad: whether the highest second moment is used.
        maximize: whether the gradient is turned over.
    """

    shrink: float
    decay: float
    weight: float
    keep: float
    gain: float
    eps: float
    amsgrad: bool
    maximize: bool


class SgdRule(NamedTuple):
    """The numbers of a step of SGD, the same for every tensor; the names are those of `torch.optim.SGD`.

    Attributes:
        gain: of the gradient in the momentum buffer, 1 - dampening.
        first_step: whether the buffers start from the gradients.
    """

    lr: float
    decay: float
    momentum: float
    gain: float
    nesterov: bool
    maximize: bool
    first_step: bool


def adam(rule: AdamRule, groups: Sequence[Group], scales: Sequence[tuple[float, float]]) -> None:
    """Take one step of Adam or AdamW, in place.

    Args:
        rule: what is the same for all tensors.
        groups: for each parameter: itself, gradient, moments; all float32 or all float64.
        scales: for each parameter: minus the size of the step, the root of the second bias correction.
    """
    if groups:
        backend_of(groups[0][0]).adam(rule, groups, scales)


def sgd(rule: SgdRule, groups: Sequence[Group]) -> None:
    """Take one step of SGD, in place.

    Args:
        rule: what is the same for all tensors.
        groups: for each parameter: itself, gradient, and its momentum buffer if there is momentum.
    """
    if groups:
        backend_of(groups[0][0]).sgd(rule, groups)


def write_back(group: Group, dense: Group) -> None:
    """Copy the contiguous copies of tensors back, except the gradient, which is only read.

    Args:
        group: as `adam` takes it.
        dense: the copies; tensors of the group itself where these are contiguous.
    """
    for i, (tensor, copy) in enumerate(zip(group, dense, strict=True)):
        if tensor is not copy and i != 1:
            tensor.copy_(copy)
