"""Square roots rounded once.

`torch.sqrt` on the CPU is not: with MKL it is the vector library's, 0.6% of float32 results are one unit off,
and 19% under `MKL_CBWR=COMPATIBLE` (torch 2.13).
"""

from __future__ import annotations

import numpy as np
import torch

from samebits.portable.arrays import as_array, as_tensor
from samebits.portable.native import load


def sqrt(x: torch.Tensor) -> torch.Tensor:
    """The square root of every element.

    Args:
        x: float32 or float64.

    Returns:
        the same shape and dtype, new memory.
    """
    out = torch.empty_like(x)
    return _write(x if out.stride() == x.stride() else torch.empty_like(x).copy_(x), out)


def sqrt_(x: torch.Tensor) -> torch.Tensor:
    """The same, written over x.

    Args:
        x: float32 or float64.
    """
    return _write(x, x) if x.is_contiguous() else x.copy_(sqrt(x))


def _write(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Into memory with the strides of x, which fill it."""
    kernels = load()
    if kernels is None:
        with np.errstate(invalid="ignore"):
            return out.copy_(as_tensor(np.sqrt(as_array(x.contiguous()))))
    if x.numel():
        kernels.call("sqrt", (int(x.dtype == torch.float64), x.data_ptr(), out.data_ptr(), x.numel()))
    return out
