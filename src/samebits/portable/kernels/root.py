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
    dense = x if out.stride() == x.stride() else torch.empty_like(x).copy_(x)
    kernels = load()
    if kernels is None:
        with np.errstate(invalid="ignore"):
            return out.copy_(as_tensor(np.sqrt(as_array(x.contiguous()))))
    if x.numel():
        words = (int(x.dtype == torch.float64), dense.data_ptr(), out.data_ptr(), x.numel())
        kernels.call("sqrt", words)
    return out
