"""Matrix products ("Contractions" in docs/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable.arrays import as_tensor
from samebits.portable.native import load

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.native import Kernels

    Scalars = tuple[float, float]  # alpha, beta

_NO_SELF = (0, 0, 0, 0)
_float64 = torch.float64


def gemm(a: Tensor, b: Tensor, self: Tensor | None = None, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """`a @ b * alpha + self * beta` for matrices, or for batches of them.

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
    kernels = load()
    if a.is_neg() or b.is_neg() or (self is not None and self.is_neg()):
        a, b, self = a.resolve_neg(), b.resolve_neg(), None if self is None else self.resolve_neg()
    if kernels is None:
        return _refer(a, b, self, beta, alpha)
    if a.dim() == 2:
        return _multiply(kernels, a, b, self, (float(alpha), float(beta)))
    return _multiply_batches(kernels, a, b, self, (float(alpha), float(beta)))


def _multiply(kernels: Kernels, a: Tensor, b: Tensor, self: Tensor | None, scalars: Scalars) -> Tensor:
    m, k = a.shape
    rows, n = b.shape
    if rows != k:  # the kernel would read other memory
        raise RuntimeError(f"{m}x{k} and {rows}x{n} cannot be multiplied")
    out = a.new_empty(m, n)  # faster than with a tuple
    added: tuple[int, ...] = _NO_SELF
    if self is not None:
        if self.dim() != 1 or self.shape[0] != n:
            self = self.expand(m, n)
            added = (self.data_ptr(), *self.stride(), 0)
        else:
            added = (self.data_ptr(), 0, self.stride(0), 0)
    a_row, a_column = a.stride()
    b_row, b_column = b.stride()
    operands = (a.data_ptr(), a_row, a_column, 0, b.data_ptr(), b_row, b_column, 0, out.data_ptr(), n, 1, 0)
    kernels.call("gemm", (a.dtype is _float64, 1, m, n, k, *operands, *added), scalars)
    return out


def _multiply_batches(
    kernels: Kernels, a: Tensor, b: Tensor, self: Tensor | None, scalars: Scalars
) -> Tensor:
    batch, m, k = a.shape
    n = b.shape[2]
    out = a.new_empty((batch, m, n))
    added: tuple[int, ...] = _NO_SELF
    if self is not None:
        self = self.expand(batch, m, n)
        outer, row, column = self.stride()
        added = (self.data_ptr(), row, column, outer)
    a_batch, a_row, a_column = a.stride()
    b_batch, b_row, b_column = b.stride()
    words: tuple[int, ...] = (a.dtype is _float64, batch, m, n, k, a.data_ptr(), a_row, a_column, a_batch)
    words += (b.data_ptr(), b_row, b_column, b_batch, out.data_ptr(), n, 1, m * n, *added)
    kernels.call("gemm", words, scalars)
    return out


def _refer(a: Tensor, b: Tensor, self: Tensor | None, beta: float, alpha: float) -> Tensor:
    from samebits.portable.reference.contraction import gemm as reference

    out = as_tensor(reference(a.numpy(force=True), b.numpy(force=True)))
    if alpha != 1:
        out = out * alpha
    if self is None:
        return out
    return out + (self if beta == 1 else self * beta)
