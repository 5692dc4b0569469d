"""Means over windows and their gradients ("Pooling" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from samebits.portable.backends import backend_of


class Windows(NamedTuple):
    """The windows along one dimension: int64 tensors with one number for each output position.

    Args:
        size: of the input.
        first, end: of a window: its first input position and the one after its last.
        counts: the window's factor of the divisor.
    """

    size: int
    first: Tensor
    end: Tensor
    counts: Tensor


def window_mean(x: Tensor, dims: tuple[Windows, ...], divisor: int) -> Tensor:
    """Return the mean of each window.

    Args:
        x: (planes, the sizes of three dimensions), float32 or float64, contiguous.
        dims: the three dimensions.
        divisor: 0 for the product of the counts.
    """
    out = torch.empty((x.shape[0], *(d.first.numel() for d in dims)), dtype=x.dtype)
    if out.numel():
        backend_of(x).window_mean(x, dims, divisor, out)
    return out


def window_spread(grad: Tensor, dims: tuple[Windows, ...], divisor: int) -> Tensor:
    """Return the gradient of `window_mean`'s input from that of its output, which is contiguous."""
    out = torch.zeros((grad.shape[0], *(d.size for d in dims)), dtype=grad.dtype)
    if grad.numel():
        backend_of(grad).window_spread(grad, dims, divisor, out)
    return out
