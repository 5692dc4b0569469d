"""Products of matrices and tensors, grouped ones too."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from samebits.errors import SamebitsError
from samebits.portable._registry import handles, rounds_itself
from samebits.portable._tensors import REAL, raised
from samebits.portable.kernels.contractions import gemm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor


@handles("aten::mm")
def mm(self: Tensor, mat2: Tensor) -> Tensor:
    """Compute `aten::mm`."""
    return gemm(self, mat2) if _is_ours(self, mat2) else torch.mm(self, mat2)


@handles("aten::bmm")
def bmm(self: Tensor, mat2: Tensor) -> Tensor:
    """Compute `aten::bmm`."""
    _check_batches(self, mat2)
    return gemm(self, mat2) if _is_ours(self, mat2) else torch.bmm(self, mat2)


@handles("aten::addmm")
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Compute `aten::addmm`: the product is scaled first, then the scaled `self` is added."""
    if not _is_ours(mat1, mat2, self):
        return torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return gemm(mat1, mat2, self if beta != 0 else None, beta, alpha)


@handles("aten::baddbmm")
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Compute `aten::baddbmm`."""
    _check_batches(batch1, batch2)
    if not _is_ours(batch1, batch2, self):
        return torch.baddbmm(self, batch1, batch2, beta=beta, alpha=alpha)
    return gemm(batch1, batch2, self if beta != 0 else None, beta, alpha)


@handles("aten::addbmm")
def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Compute `aten::addbmm`: one contraction over k = (batch, k)."""
    _check_batches(batch1, batch2)
    if not _is_ours(batch1, batch2, self):
        return torch.addbmm(self, batch1, batch2, beta=beta, alpha=alpha)
    left = batch1.permute(1, 0, 2).reshape(batch1.shape[1], -1 if batch1.numel() else 0)
    right = batch2.reshape(left.shape[1], batch2.shape[2])
    return gemm(left, right, self if beta != 0 else None, beta, alpha)


@handles("aten::mv")
def mv(self: Tensor, vec: Tensor) -> Tensor:
    """Compute `aten::mv`."""
    _check_vector("mv", self, vec)
    return gemm(self, vec.unsqueeze(1)).squeeze_(1) if _is_ours(self, vec) else torch.mv(self, vec)


@handles("aten::addmv")
def addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Compute `aten::addmv`."""
    _check_vector("addmv", mat, vec)
    if not _is_ours(mat, vec, self):
        return torch.addmv(self, mat, vec, beta=beta, alpha=alpha)
    added = self.expand(mat.shape[0]).unsqueeze(1) if beta != 0 else None
    return gemm(mat, vec.unsqueeze(1), added, beta, alpha).squeeze_(1)


@handles("aten::dot")
def dot(self: Tensor, tensor: Tensor) -> Tensor:
    """Compute `aten::dot`."""
    if self.dim() != 1 or tensor.shape != self.shape:
        raise RuntimeError(
            f"dot: two vectors of one size are needed: {tuple(self.shape)}, {tuple(tensor.shape)}"
        )
    if not _is_ours(self, tensor):
        return torch.dot(self, tensor)
    return gemm(self.unsqueeze(0), tensor.unsqueeze(1)).view(())


@handles("aten::vdot")
def vdot(self: Tensor, other: Tensor) -> Tensor:
    """Compute `aten::vdot`, which is `dot` for real numbers."""
    return dot(self, other)


@handles("aten::addr")
def addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Compute `aten::addr`: the contraction of one k."""
    if vec1.dim() != 1 or vec2.dim() != 1:
        raise RuntimeError(f"addr: two vectors are needed: {tuple(vec1.shape)}, {tuple(vec2.shape)}")
    if not _is_ours(vec1, vec2, self):
        return torch.addr(self, vec1, vec2, beta=beta, alpha=alpha)
    return gemm(vec1.unsqueeze(1), vec2.unsqueeze(0), self if beta != 0 else None, beta, alpha)


@handles("aten::_addmm_activation")
def addmm_activation(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1, use_gelu: bool = False
) -> Tensor:
    """Compute `aten::_addmm_activation` with its default, relu."""
    if use_gelu:
        raise SamebitsError(
            "aten._addmm_activation with use_gelu has no portable kernel: call addmm, then gelu.",
            slug="portable-op",
        )
    return torch.relu(addmm(self, mat1, mat2, beta=beta, alpha=alpha))


@handles("aten::_trilinear")
def trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """Compute `aten::_trilinear` (of `bilinear`): i1 with i2 over what i3 lacks, then the result with i3."""
    i1, i2, i3 = (_expanded(i, at) for i, at in ((i1, expand1), (i2, expand2), (i3, expand3)))
    first = [d for d in sumdim if d in expand3]
    both = _contract(_contract(i1, i2, first), i3, [d for d in sumdim if d not in expand3])
    for d in sorted(sumdim, reverse=True):
        both = both.squeeze(d)
    return both


def _expanded(tensor: Tensor, at: Sequence[int]) -> Tensor:
    for d in sorted(at):
        tensor = tensor.unsqueeze(d)
    return tensor


def _contract(x: Tensor, y: Tensor, dims: Sequence[int]) -> Tensor:
    """Contract over k = the dims in row-major order, kept with size 1; other dims broadcast."""
    if not dims:
        return x * y
    if not x.is_floating_point():  # exact in any order; the kernel is for floats
        return (x * y).sum(list(dims), keepdim=True, dtype=x.dtype)
    rank = x.dim()
    size = [max(a, b) if min(a, b) else 0 for a, b in zip(x.shape, y.shape, strict=True)]
    k = sorted(dims)
    rest = [d for d in range(rank) if d not in k]
    shared = [d for d in rest if (x.shape[d] == 1) == (y.shape[d] == 1)]
    rows = [d for d in rest if d not in shared and x.shape[d] != 1]
    columns = [d for d in rest if d not in shared and x.shape[d] == 1]
    b, m, n, depth = (math.prod(size[d] for d in group) for group in (shared, rows, columns, k))
    full = [size[d] if d in k else -1 for d in range(rank)]
    left = x.expand(full).permute(*shared, *rows, *k, *columns).reshape(b, m, depth)
    right = y.expand(full).permute(*shared, *k, *columns, *rows).reshape(b, depth, n)
    out = gemm(left, right).view([size[d] for d in (*shared, *rows, *columns)] + [1] * len(k))
    order = (*shared, *rows, *columns, *k)
    return out.permute([order.index(d) for d in range(rank)])


def _is_ours(left: Tensor, right: Tensor, added: Tensor | None = None) -> bool:
    """Tell whether this is a product of floats; integers are left to torch, which is exact.

    Raises:
        RuntimeError: as torch, for operands of two dtypes.
        SamebitsError: for numbers that have no portable kernel.
    """
    dtype = left.dtype
    if right.dtype is not dtype or (added is not None and added.dtype is not dtype):
        raise RuntimeError(f"a product of {dtype} and {right.dtype if added is None else added.dtype}")
    if dtype in REAL:
        return True
    if dtype.is_floating_point or dtype.is_complex:
        raise SamebitsError(
            f"matrix products have portable kernels for floats, not for {dtype}: run without portable mode",
            slug="portable-op",
        )
    return False


def _check_batches(left: Tensor, right: Tensor) -> None:
    if (
        left.dim() != 3
        or right.dim() != 3
        or left.shape[0] != right.shape[0]
        or left.shape[2] != right.shape[1]
    ):
        raise RuntimeError(f"bmm: shapes {tuple(left.shape)} and {tuple(right.shape)} cannot be multiplied")


def _check_vector(name: str, matrix: Tensor, vector: Tensor) -> None:
    if matrix.dim() != 2 or vector.dim() != 1 or matrix.shape[1] != vector.shape[0]:
        raise RuntimeError(
            f"{name}: shapes {tuple(matrix.shape)} and {tuple(vector.shape)} cannot be multiplied"
        )


_ROW_BYTES = 16
"""Rows of torch's result begin at multiples of it, so that the result can be an input of the next product."""


@handles("aten::_grouped_mm")
@rounds_itself
def grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Compute `aten::_grouped_mm`: `offs` has the ends of the groups; outside of them the result is +0."""
    del bias, out_dtype  # torch takes no bias, and only the dtype of self
    left, right = raised(self), raised(mat2)
    if offs is None:
        return _in_padded_rows(gemm(left, right), self.dtype)
    bounds = [*_bounds(offs)]
    if self.dim() == mat2.dim():
        groups = [gemm(left[:, at], right[at]) for at in bounds]
        shape = (len(groups), self.shape[0], mat2.shape[1])
        return _in_padded_rows(torch.stack(groups) if groups else left.new_zeros(shape), self.dtype)
    by_rows = self.dim() == 2
    product = left.new_zeros(self.shape[-2], mat2.shape[-1])
    for group, at in enumerate(bounds):
        if by_rows:
            product[at] = gemm(left[at], right[group])
        else:
            product[:, at] = gemm(left[group], right[:, at])
    return _in_padded_rows(product, self.dtype)


def _bounds(offs: Tensor) -> Iterator[slice]:
    start = 0
    for end in offs.tolist():
        yield slice(start, end)
        start = end


def _in_padded_rows(product: Tensor, dtype: torch.dtype) -> Tensor:
    step = _ROW_BYTES // dtype.itemsize
    *leading, columns = product.shape
    rows = product.new_empty((*leading, -(-columns // step) * step), dtype=dtype)[..., :columns]
    return rows.copy_(product)
