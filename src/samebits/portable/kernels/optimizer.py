"""Steps of optimizers over lists of tensors ("Optimizers" in docs/portable-numerics.md), in one call each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from samebits.portable.arrays import as_array
from samebits.portable.native import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

Group = tuple["Tensor", ...]
_MAXIMIZE, _DECAY_GRADIENT, _AMSGRAD, _MOMENTUM, _FIRST_STEP, _NESTEROV = (1 << i for i in range(6))


@dataclass(frozen=True)
class AdamRule:
    """What a step of Adam does with every tensor.

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


@dataclass(frozen=True)
class SgdRule:
    """What a step of SGD does with every tensor; the names are those of `torch.optim.SGD`.

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
    """One step of Adam or AdamW, in place.

    Args:
        rule: what is the same for all tensors.
        groups: for each parameter: itself, gradient, moments; all float32 or all float64.
        scales: for each parameter: minus the size of the step, the root of the second bias correction.
    """
    flags = _MAXIMIZE * rule.maximize | _DECAY_GRADIENT * (rule.decay != 0) | _AMSGRAD * rule.amsgrad
    numbers = (rule.shrink, rule.decay, rule.weight, rule.keep, rule.gain, rule.eps)
    if load() is None:
        from samebits.portable.reference.optimizer import adam as reference

        for group, scale in zip(groups, scales, strict=True):
            _in_numpy(group, lambda arrays, scale=scale: reference(rule, arrays, *scale))
        return
    _step(0, flags, numbers, groups, scales)


def sgd(rule: SgdRule, groups: Sequence[Group]) -> None:
    """One step of SGD, in place.

    Args:
        rule: what is the same for all tensors.
        groups: for each parameter: itself, gradient, and its momentum buffer if there is momentum.
    """
    flags = _MAXIMIZE * rule.maximize | _DECAY_GRADIENT * (rule.decay != 0) | _MOMENTUM * (rule.momentum != 0)
    flags |= _FIRST_STEP * rule.first_step | _NESTEROV * rule.nesterov
    if load() is None:
        from samebits.portable.reference.optimizer import sgd as reference

        for group in groups:
            _in_numpy(group, lambda arrays: reference(rule, arrays))
        return
    numbers = (1.0, rule.decay, 0.0, rule.momentum, rule.gain, 0.0)
    _step(1, flags, numbers, groups, [(-rule.lr, 1.0)] * len(groups))


def _step(
    is_sgd: int,
    flags: int,
    numbers: tuple[float, ...],
    groups: Sequence[Group],
    scales: Sequence[tuple[float, float]],
) -> None:
    kernels = load()
    if kernels is None or not groups:
        return
    dense = [tuple(tensor.contiguous() for tensor in group) for group in groups]
    words = [int(groups[0][0].dtype == torch.float64), is_sgd, flags, len(groups)]
    for group in dense:
        addresses = [tensor.data_ptr() for tensor in group]
        words += [group[0].numel(), *addresses, *[0] * (5 - len(addresses))]
    kernels.call("optimizer", words, [*numbers, *(number for scale in scales for number in scale)])
    for group, copy in zip(groups, dense, strict=True):
        _write_back(group, copy)


def _write_back(group: Group, dense: Group) -> None:
    for i, (tensor, copy) in enumerate(zip(group, dense, strict=True)):
        if tensor is not copy and i != 1:  # the gradient is only read
            tensor.copy_(copy)


def _in_numpy(group: Group, step: Callable[..., None]) -> None:
    dense = tuple(tensor.contiguous() for tensor in group)
    step(tuple(as_array(tensor) for tensor in dense))
    _write_back(group, dense)
