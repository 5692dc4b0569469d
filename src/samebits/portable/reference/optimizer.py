"""Steps of optimizers over one tensor ("Optimizers" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from samebits.portable.kernels.optimizer import AdamRule, SgdRule
    from samebits.portable.reference.fma import Array


def adam(rule: AdamRule, arrays: tuple[Array, ...], minus_step: float, root: float) -> None:
    """Take one step of Adam or AdamW, in place.

    Args:
        rule: what is the same for all tensors.
        arrays: parameter, gradient, first moment, second moment, and the highest second moment for AMSGrad.
        minus_step: minus the learning rate by the first bias correction.
        root: the square root of the second bias correction.
    """
    param, grad, first, second = arrays[:4]
    of = param.dtype.type
    with np.errstate(all="ignore"):
        grad = -grad if rule.maximize else grad
        param *= of(rule.shrink)
        if rule.decay:
            grad = grad + of(rule.decay) * param
        weight, apart = of(rule.weight), grad - first
        first[...] = first + weight * apart if abs(weight) < of(0.5) else grad - apart * (of(1) - weight)
        second[...] = second * of(rule.keep) + of(rule.gain) * grad * grad
        if rule.amsgrad:
            np.maximum(arrays[4], second, out=arrays[4])
            second = arrays[4]
        param += of(minus_step) * first / (np.sqrt(second) / of(root) + of(rule.eps))


def sgd(rule: SgdRule, arrays: tuple[Array, ...]) -> None:
    """Take one step of SGD, in place.

    Args:
        rule: what is the same for all tensors.
        arrays: parameter, gradient, and the momentum buffer if there is momentum.
    """
    param, grad = arrays[:2]
    of = param.dtype.type
    with np.errstate(all="ignore"):
        grad = -grad if rule.maximize else grad
        if rule.decay:
            grad = grad + of(rule.decay) * param
        if rule.momentum:
            buffer = arrays[2]
            buffer[...] = grad if rule.first_step else buffer * of(rule.momentum) + of(rule.gain) * grad
            grad = grad + of(rule.momentum) * buffer if rule.nesterov else buffer
        param += of(-rule.lr) * grad
