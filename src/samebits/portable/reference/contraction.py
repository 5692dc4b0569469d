"""Matrix products: ascending fma chains in blocks of 128, block sums added in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from samebits.portable.reference.fma import fma

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array

K_BLOCK = 128


def gemm(a: Array, b: Array) -> Array:
    """Return `a @ b`.

    Args:
        a: (..., m, k), float32 or float64.
        b: (..., k, n), the same dtype and leading sizes.

    Returns:
        (..., m, n).
    """
    shape = (*a.shape[:-1], b.shape[-1])
    total = np.zeros(shape, a.dtype)
    for start in range(0, a.shape[-1], K_BLOCK):
        chain = np.zeros(shape, a.dtype)
        for k in range(start, min(start + K_BLOCK, a.shape[-1])):
            chain = fma(a[..., :, k, None], b[..., None, k, :], chain)
        with np.errstate(all="ignore"):
            total = total + chain
    return total
