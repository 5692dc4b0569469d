"""Running sums and products: chains in binary64 ("Running sums" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array


def running(x: Array, dim: int, *, product: bool) -> Array:
    """Return the sum, or the product, of the values up to each one.

    Args:
        x: float32 or float64.
        dim: the dimension to run along.
        product: whether products are wanted.
    """
    lines = np.moveaxis(x, dim, 0)
    out = np.empty_like(lines)
    chain = np.full(lines.shape[1:], product, np.float64)
    with np.errstate(all="ignore"):
        for i, values in enumerate(lines.astype(np.float64)):
            chain = chain * values if product else chain + values
            out[i] = chain.astype(x.dtype)
    return np.moveaxis(out, 0, dim)
