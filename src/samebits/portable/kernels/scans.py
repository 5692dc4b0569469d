"""Running sums and products ("Running sums" in docs/portable-numerics.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from samebits.portable.arrays import as_array, as_tensor
from samebits.portable.native import load

if TYPE_CHECKING:
    from torch import Tensor


def running(x: Tensor, dim: int, *, product: bool = False) -> Tensor:
    """The sum, or the product, of the values up to each one, along a dimension.

    Args:
        x: float32 or float64, any strides.
        dim: the dimension; 0 or -1 if there is none.
        product: whether products are wanted.
    """
    x = x.contiguous()
    out = torch.empty_like(x)
    if not x.numel():
        return out
    dim = dim % x.dim() if x.dim() else 0
    shape = x.shape or (1,)
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.scans import running as reference

        found = reference(as_array(x.view(shape)), dim, product=product)
        return out.copy_(as_tensor(found.copy()).view(x.shape))
    sizes = (math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :]))
    kernels.call("scan", (product, x.dtype == torch.float64, x.data_ptr(), out.data_ptr(), *sizes))
    return out
