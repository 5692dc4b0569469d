"""Matrix products ("Contractions" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.portable.backends import backend_of

if TYPE_CHECKING:
    from torch import Tensor


def gemm(a: Tensor, b: Tensor, self: Tensor | None = None, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """Compute `a @ b * alpha + self * beta` for matrices, or for batches of them.

    Args:
        a: (m, k) or (batch, m, k), float32 or float64, any strides, in CPU memory.
        b: (k, n) or (batch, k, n), the same dtype.
        self: the same dtype, of a shape that expands to the result's; None to add nothing.
        beta: not 0.
        alpha: scales the product before `self` is added.

    Returns:
        (m, n) or (batch, m, n), contiguous.

    Raises:
        RuntimeError: if a has not as many columns as b has rows.
    """
    if a.is_neg() or b.is_neg() or (self is not None and self.is_neg()):
        a, b, self = a.resolve_neg(), b.resolve_neg(), None if self is None else self.resolve_neg()
    if a.dim() == 2:
        m, k = a.shape
        rows, n = b.shape
        if rows != k:  # a kernel would read other memory
            raise RuntimeError(f"{m}x{k} and {rows}x{n} cannot be multiplied")
        sizes, out = (0, m, n, k), a.new_empty(m, n)  # faster than with a tuple
    else:
        batches, m, k = a.shape
        n = b.shape[2]
        sizes, out = (batches, m, n, k), a.new_empty((batches, m, n))
        if not batches:
            return out
    backend_of(a).gemm(a, b, self, (alpha, beta), sizes, out)
    return out
