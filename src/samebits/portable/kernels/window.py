"""Means over windows and their gradients ("Pooling" in docs/portable-numerics.md)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from samebits.portable.arrays import as_array
from samebits.portable.native import load


@dataclass(frozen=True)
class Windows:
    """Where the windows lie along one dimension: int64 tensors with one number for each output position.

    Args:
        size: of the input.
        first, end: of a window: its first input position and the one after its last.
        count: the window's factor of the divisor.
    """

    size: int
    first: Tensor
    end: Tensor
    count: Tensor


def window_mean(x: Tensor, dims: tuple[Windows, ...], divisor: int) -> Tensor:
    """The mean of each window.

    Args:
        x: (planes, the sizes of three dimensions), float32 or float64, contiguous.
        dims: the three dimensions.
        divisor: 0 for the product of the counts.
    """
    out = torch.empty((x.shape[0], *(d.first.numel() for d in dims)), dtype=x.dtype)
    _call(x, out, dims, divisor, backward=False)
    return out


def window_spread(grad: Tensor, dims: tuple[Windows, ...], divisor: int) -> Tensor:
    """The gradient of `window_mean`'s input from that of its output, which is contiguous."""
    out = torch.zeros((grad.shape[0], *(d.size for d in dims)), dtype=grad.dtype)
    _call(out, grad, dims, divisor, backward=True)
    return out


def _call(wide: Tensor, narrow: Tensor, dims: tuple[Windows, ...], divisor: int, *, backward: bool) -> None:
    if not narrow.numel():
        return
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.window import mean, spread

        bounds = [(d.first.tolist(), d.end.tolist(), d.count.tolist()) for d in dims]
        (spread if backward else mean)(as_array(wide), as_array(narrow), bounds, divisor)
        return
    head = (
        int(wide.dtype == torch.float64),
        int(backward),
        wide.data_ptr(),
        narrow.data_ptr(),
        wide.shape[0],
        divisor,
    )
    addresses = [t.data_ptr() for d in dims for t in (d.first, d.end, d.count)]
    kernels.call("window", (*head, *wide.shape[1:], *narrow.shape[1:], *addresses))
