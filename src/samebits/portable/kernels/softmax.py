"""Softmax and its logarithm ("Softmax" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable.backends import backend_of

if TYPE_CHECKING:
    from torch import Tensor

NAMES = ("softmax", "log_softmax", "softmax_gradient", "log_softmax_gradient")
"""In the order of native/portable/softmax.h."""


def softmax(x: Tensor, dim: int, log: bool = False) -> Tensor:
    """Return exp(x) / sum of exp(x) over a dimension, or its logarithm.

    Args:
        x: float32 or float64, any strides.
        dim: the dimension.
        log: whether the logarithm is wanted.
    """
    return _by_rows(NAMES[log], x, None, dim)


def softmax_gradient(gradient: Tensor, output: Tensor, dim: int, log: bool = False) -> Tensor:
    """Return the gradient of the input of `softmax`.

    Args:
        gradient: that of the output.
        output: what `softmax` gave.
        dim: as for `softmax`.
        log: as for `softmax`.
    """
    return _by_rows(NAMES[2 + log], output, gradient, dim)


def _by_rows(name: str, x: Tensor, gradient: Tensor | None, dim: int) -> Tensor:
    last = x.dim() == 0 or dim % x.dim() == x.dim() - 1
    if last:
        return _rows(name, x.contiguous(), None if gradient is None else gradient.contiguous())
    moved = None if gradient is None else gradient.movedim(dim, -1).contiguous()
    return _rows(name, x.movedim(dim, -1).contiguous(), moved).movedim(-1, dim).contiguous()


def _rows(name: str, x: Tensor, gradient: Tensor | None) -> Tensor:
    out = torch.empty_like(x)
    if not x.numel():
        return out
    width = x.shape[-1] if x.dim() else 1
    backend_of(x).softmax_rows(name, x, gradient, out, width)
    return out
