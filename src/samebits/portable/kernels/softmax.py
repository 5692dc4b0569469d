"""Softmax and its logarithm ("Softmax" in docs/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable.arrays import as_array, as_tensor
from samebits.portable.native import load

if TYPE_CHECKING:
    from torch import Tensor

_NAMES = ("softmax", "log_softmax", "softmax_gradient", "log_softmax_gradient")


def softmax(x: Tensor, dim: int, log: bool = False) -> Tensor:
    """exp(x) / sum of exp(x) over a dimension, or its logarithm.

    Args:
        x: float32 or float64, any strides.
        dim: the dimension.
        log: whether the logarithm is wanted.
    """
    return _by_rows(_NAMES[log], x, None, dim)


def softmax_gradient(gradient: Tensor, output: Tensor, dim: int, log: bool = False) -> Tensor:
    """The gradient of the input of `softmax`.

    Args:
        gradient: that of the output.
        output: what `softmax` gave.
        dim: as for `softmax`.
        log: as for `softmax`.
    """
    return _by_rows(_NAMES[2 + log], output, gradient, dim)


def _by_rows(name: str, x: Tensor, gradient: Tensor | None, dim: int) -> Tensor:
    last = x.dim() == 0 or dim % x.dim() == x.dim() - 1
    if last:
        return _rows(name, x.contiguous(), None if gradient is None else gradient.contiguous())
    moved = None if gradient is None else gradient.movedim(dim, -1).contiguous()
    return _rows(name, x.movedim(dim, -1).contiguous(), moved).movedim(-1, dim).contiguous()


def _rows(name: str, x: Tensor, gradient: Tensor | None) -> Tensor:
    out = torch.empty_like(x)
    count = x.numel()
    if not count:
        return out
    width = x.shape[-1] if x.dim() else 1
    kernels = load()
    if kernels is None:
        from samebits.portable.reference import softmax as reference

        rows = [as_array(t.reshape(-1, width)) for t in (x, gradient) if t is not None]
        return out.copy_(as_tensor(getattr(reference, name)(*rows)).view(x.shape))
    address = 0 if gradient is None else gradient.data_ptr()
    wide = x.dtype == torch.float64
    kernels.call(
        "softmax", (_NAMES.index(name), wide, x.data_ptr(), address, out.data_ptr(), count // width, width)
    )
    return out
