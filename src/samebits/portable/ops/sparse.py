"""Sums and products of sparse tensors ("Sparse tensors" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from samebits.portable._devices import device_types
from samebits.portable._refusals import refuse_use
from samebits.portable._registry import handles_sparse
from samebits.portable._tensors import raised
from samebits.portable.backends.detour import on_host
from samebits.portable.kernels.reductions import accumulate_

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor


_AT_ONCE = 1 << 22  # elements of the products of one part: they are in memory at the same time


class Entries(NamedTuple):
    """The entries of a sparse tensor, as COO has them.

    Args:
        indices: int64, (sparse dimensions, entries).
        values: (entries, …dense dimensions).
        sizes: of the sparse dimensions.
        coalesced: whether no index comes twice, and indices ascend.
    """

    indices: Tensor
    values: Tensor
    sizes: torch.Size
    coalesced: bool

    def keys(self) -> Tensor:
        """Return a number for the index of each entry: row-major over the sparse dimensions."""
        key = torch.zeros(self.indices.shape[1], dtype=torch.int64, device=self.indices.device)
        for line, size in zip(self.indices, self.sizes, strict=True):
            key = key * size + line
        return key

    def columns(self) -> Tensor:
        """Return the values as (entries, elements of the dense dimensions)."""
        return self.values.reshape(self.values.shape[0], self.values.shape[1:].numel())


def entries_of(tensor: Tensor, op: str) -> Entries:
    """Return the entries of a COO, CSR or CSC tensor; the entries of CSC come by columns.

    Args:
        tensor: compressed ones without batch dimensions.
        op: the op that needs them, for the refusal.
    """
    if tensor.layout == torch.sparse_coo:
        sizes = tensor.shape[: tensor.sparse_dim()]
        return Entries(tensor._indices(), tensor._values(), sizes, tensor.is_coalesced())
    by_rows = tensor.layout == torch.sparse_csr
    starts = tensor.crow_indices() if by_rows else tensor.ccol_indices()
    others = (tensor.col_indices() if by_rows else tensor.row_indices()).to(torch.int64)
    if starts.dim() > 1:
        raise refuse_use(op, f"of a batch of {tensor.layout} tensors")
    counts = starts.to(torch.int64).diff()
    lines = torch.repeat_interleave(torch.arange(counts.numel(), device=counts.device), counts)
    index = torch.stack([lines, others] if by_rows else [others, lines])
    return Entries(index, tensor.values(), tensor.shape[:2], coalesced=by_rows)


@handles_sparse("aten::_coalesce")
def coalesce(self: Tensor) -> Tensor:
    """Compute `aten::_coalesce`: from +0, entries with the same index are added in the order of storage."""
    if self.is_coalesced():
        return self
    entries = entries_of(self, "_coalesce")
    keys, row_of = torch.unique(entries.keys(), return_inverse=True)
    columns = entries.columns()
    values = _added(torch.zeros((keys.numel(), columns.shape[1]), device=columns.device), row_of, columns)
    return _made(self, _indices_of(keys, entries.sizes), values.reshape(-1, *entries.values.shape[1:]), True)


@handles_sparse("aten::_to_dense")
def to_dense(self: Tensor, dtype: torch.dtype | None = None, masked_grad: bool | None = None) -> Tensor:
    """Compute `aten::_to_dense`: +0 where nothing is stored."""
    del masked_grad
    entries = entries_of(_whole(self), "_to_dense")
    columns = entries.columns()
    out = columns.new_zeros((entries.sizes.numel(), columns.shape[1]))
    out[entries.keys()] = columns
    out = out.reshape(self.shape)
    return out if dtype is None else out.to(dtype)


@handles_sparse("aten::_to_sparse", "aten::_to_sparse.sparse_dim")
def to_sparse(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Compute `aten::_to_sparse` of a sparse tensor."""
    return _converted(torch.Tensor.to_sparse, self, *args, **kwargs)


@handles_sparse("aten::_to_sparse_csr")
def to_csr(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Compute `aten::_to_sparse_csr` of a sparse tensor."""
    return _converted(torch.Tensor.to_sparse_csr, self, *args, **kwargs)


@handles_sparse("aten::_to_sparse_csc")
def to_csc(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Compute `aten::_to_sparse_csc` of a sparse tensor."""
    return _converted(torch.Tensor.to_sparse_csc, self, *args, **kwargs)


@handles_sparse("aten::_to_copy")
def to_copy(self: Tensor, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Tensor:
    """Compute `aten::_to_copy` to another float dtype or device."""
    if kwargs.get("layout") not in {None, self.layout}:
        raise refuse_use("_to_copy", "of a sparse tensor to another layout")
    device = torch.device(kwargs.get("device") or self.device)
    if device.type not in device_types():
        raise refuse_use("_to_copy", f"of a sparse tensor to {device}")
    if dtype is not None and not dtype.is_floating_point:
        raise refuse_use("_to_copy", "of a sparse tensor of floats to integers")
    values = _values(self).to(device, dtype or self.dtype, copy=True)
    return _with_values(self, values)


@handles_sparse("aten::mm")
def mm(self: Tensor, mat2: Tensor) -> Tensor:
    """Compute `aten::mm`, one of them sparse."""
    if not _is_sparse(self):
        return mm(mat2.t(), self.t()).t().contiguous()
    if _is_sparse(mat2):
        raise refuse_use("mm", "of two sparse tensors")
    entries = entries_of(self, "mm")
    if entries.values.dim() != 1:
        raise refuse_use("mm", "of a sparse tensor with dense dimensions")
    out = torch.zeros((self.shape[0], mat2.shape[1]), device=mat2.device)
    rows, columns = entries.indices
    part = max(1, _AT_ONCE // max(1, mat2.shape[1]))
    dtype = torch.promote_types(entries.values.dtype, mat2.dtype)
    for start in range(0, rows.numel(), part):
        at = slice(start, start + part)
        factors = raised(mat2.index_select(0, columns[at]))
        out = _added(out, rows[at], raised(entries.values[at, None]) * factors, keep=True)
    return out.to(dtype)


@handles_sparse("aten::addmm", "aten::_sparse_addmm")
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Compute `aten::addmm`, a factor sparse: the product is scaled, then the scaled `self` is added."""
    if _is_sparse(self):
        raise refuse_use("addmm", "onto a sparse tensor")
    out = raised(mm(mat1, mat2))
    if alpha != 1:
        out = out * alpha
    if beta != 0:
        added = raised(self)
        out = out + (added if beta == 1 else added * beta)
    return out.to(self.dtype)


@handles_sparse("aten::mv")
def mv(self: Tensor, vec: Tensor) -> Tensor:
    """Compute `aten::mv`, the matrix sparse."""
    return mm(self, vec.unsqueeze(1)).squeeze(1)


@handles_sparse("aten::add.Tensor")
def add(self: Tensor, other: Tensor, *, alpha: float = 1) -> Tensor:
    """Compute `aten::add`: entries are added to a dense tensor in the order in which they are stored.

    Of two sparse ones, the entries of `other` follow those of `self`; they are coalesced if both were.
    """
    if not _is_sparse(self):
        return _add_to_dense(self, other, alpha)
    _only_coo("add", self, other)
    mine, more = entries_of(self, "add"), entries_of(other, "add")
    scaled = more.values if alpha == 1 else more.values * alpha
    both = torch.cat([mine.indices, more.indices], 1), torch.cat([mine.values, scaled])
    out = _made(self, *both, coalesced=False)
    return coalesce(out) if mine.coalesced and more.coalesced else out


@handles_sparse("aten::add_.Tensor")
def add_(self: Tensor, other: Tensor, *, alpha: float = 1) -> Tensor:
    """Compute `aten::add_`, at least one of them sparse."""
    return self.copy_(add(self, other, alpha=alpha))


@handles_sparse("aten::sub.Tensor")
def sub(self: Tensor, other: Tensor, *, alpha: float = 1) -> Tensor:
    """Compute `aten::sub`: `other` times -alpha is added."""
    return add(self, other, alpha=-alpha)


@handles_sparse("aten::sub_.Tensor")
def sub_(self: Tensor, other: Tensor, *, alpha: float = 1) -> Tensor:
    """Compute `aten::sub_`."""
    return add_(self, other, alpha=-alpha)


@handles_sparse("aten::mul.Tensor", "aten::mul.Scalar")
def mul(self: Tensor, other: Tensor | float) -> Tensor:
    """Compute `aten::mul` of a sparse tensor and a number, or a dense tensor of its shape."""
    if not _is_sparse(self):
        self, other = other, self  # type: ignore[assignment]
    if isinstance(other, torch.Tensor) and _is_sparse(other):
        raise refuse_use("mul", "of two sparse tensors")
    if isinstance(other, torch.Tensor) and other.dim():
        _only_coo("mul", self)
        if other.shape != self.shape:
            raise refuse_use("mul", "of a sparse tensor and one of another shape")
        whole = coalesce(self)
        return _with_values(whole, whole._values() * _taken(other, entries_of(whole, "mul")))
    return _with_values(self, _values(self) * other)


@handles_sparse("aten::mul_.Tensor", "aten::mul_.Scalar")
def mul_(self: Tensor, other: Tensor | float) -> Tensor:
    """Compute `aten::mul_`."""
    return self.copy_(mul(self, other))


@handles_sparse("aten::div.Tensor", "aten::div.Scalar")
def div(self: Tensor, other: Tensor | float) -> Tensor:
    """Compute `aten::div` of a sparse tensor by a number; entries with the same index are added first."""
    if isinstance(other, torch.Tensor) and other.dim():
        raise refuse_use("div", "by a tensor with dimensions, of a sparse tensor")
    whole = _whole(self)
    return _with_values(whole, _values(whole) / other)


@handles_sparse("aten::neg")
def neg(self: Tensor) -> Tensor:
    """Compute `aten::neg`."""
    return _with_values(self, -_values(self))


@handles_sparse("aten::_sparse_sum.dim")
def sum_dim(self: Tensor, dim: Sequence[int]) -> Tensor:
    """Compute `aten::_sparse_sum.dim` over sparse dimensions: entries are added in the order of storage."""
    _only_coo("_sparse_sum", self)
    gone = {d % self.dim() for d in dim}
    sparse_dims = self.sparse_dim()
    left = [d for d in range(sparse_dims) if d not in gone]
    if not left or any(d >= sparse_dims for d in gone):
        raise refuse_use("_sparse_sum", "over all sparse or over dense dimensions")
    entries = entries_of(self, "_sparse_sum")
    shape = [self.shape[d] for d in range(self.dim()) if d not in gone]
    index = entries.indices[torch.tensor(left, device=self.device)]
    return coalesce(torch.sparse_coo_tensor(index, entries.values, shape, check_invariants=False))


@handles_sparse("aten::sparse_mask")
def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """Compute `aten::sparse_mask`: `self` at the indices of `mask`."""
    if not _is_sparse(self) and mask.layout == torch.sparse_coo:
        return _with_values(mask, _taken(self, entries_of(mask, "sparse_mask")))
    if _is_sparse(self):
        _only_coo("sparse_mask", self)
        self = coalesce(self)
    return _moving(torch.Tensor.sparse_mask, self, mask)


def _converted(convert: Callable[..., Tensor], tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return _moving(convert, _whole(tensor), *args, **kwargs)


def _moving(move: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """Call a function of torch that only moves entries on the CPU, whose like on a GPU may add them.

    For example, a coalesced tensor is coalesced again on its way to CSC, and CUDA's kernel adds its values to
    +0: -0 becomes +0 (`coalesceValuesKernel` in ATen/native/sparse/cuda/SparseCUDAApplyUtils.cuh).
    """
    compute = move if args[0].is_cpu else on_host(move)
    return compute(*args, **kwargs)


def _taken(dense: Tensor, entries: Entries) -> Tensor:
    """Return the elements of a dense tensor at the indices of a COO tensor of its shape."""
    rows = dense.reshape(entries.sizes.numel(), entries.values.shape[1:].numel())
    return rows.index_select(0, entries.keys()).reshape(entries.values.shape)


def _add_to_dense(dense: Tensor, sparse: Tensor, alpha: float) -> Tensor:
    if dense.shape != sparse.shape:
        raise refuse_use("add", "of a sparse tensor and a dense one of another shape")
    entries = entries_of(sparse, "add")
    columns = raised(entries.columns())
    start = raised(dense).reshape(entries.sizes.numel(), columns.shape[1])
    out = _added(start, entries.keys(), columns if alpha == 1 else columns * alpha, keep=True)
    return out.to(torch.promote_types(dense.dtype, sparse.dtype)).reshape(dense.shape)


def _added(start: Tensor, row_of: Tensor, columns: Tensor, *, keep: bool = False) -> Tensor:
    """Return `start` with each row of `columns` added to its row there, in ascending order.

    Args:
        start: (rows, columns).
        row_of: int64, of each row.
        columns: of any float dtype; float16 and bfloat16 are added up in float32 and rounded once.
        keep: give the dtype of the sum.
    """
    terms = raised(columns)
    out = start.to(terms.dtype).clone(memory_format=torch.contiguous_format)[None]
    accumulate_(out, row_of[None, :, None].expand(1, *terms.shape), terms[None])
    return out[0] if keep else out[0].to(columns.dtype)


def _indices_of(keys: Tensor, sizes: torch.Size) -> Tensor:
    """Return the index of each key, the inverse of `Entries.keys`."""
    lines = []
    for size in reversed(sizes):
        lines.append(keys % max(size, 1))
        keys = torch.div(keys, max(size, 1), rounding_mode="floor")
    return torch.stack(lines[::-1]) if lines else keys.new_zeros((0, keys.numel()))


def _whole(tensor: Tensor) -> Tensor:
    """Return the tensor with no index twice; compressed ones have none."""
    return coalesce(tensor) if tensor.layout == torch.sparse_coo else tensor


def _made(like: Tensor, index: Tensor, values: Tensor, coalesced: bool) -> Tensor:
    return torch.sparse_coo_tensor(index, values, like.shape, is_coalesced=coalesced, check_invariants=False)


def _values(tensor: Tensor) -> Tensor:
    return tensor._values() if tensor.layout == torch.sparse_coo else tensor.values()


def _with_values(tensor: Tensor, values: Tensor) -> Tensor:
    """Return a tensor with the same indices and other values, on their device."""
    device = values.device
    if tensor.layout == torch.sparse_coo:
        return _made(tensor, tensor._indices().to(device), values, tensor.is_coalesced())
    by_rows = tensor.layout == torch.sparse_csr
    starts = tensor.crow_indices() if by_rows else tensor.ccol_indices()
    others = tensor.col_indices() if by_rows else tensor.row_indices()
    return torch.sparse_compressed_tensor(
        starts.to(device),
        others.to(device),
        values,
        tensor.shape,
        layout=tensor.layout,
        check_invariants=False,
    )


def _is_sparse(tensor: Tensor) -> bool:
    return tensor.layout != torch.strided


def _only_coo(op: str, *tensors: Tensor) -> None:
    for tensor in tensors:
        if tensor.layout != torch.sparse_coo:
            raise refuse_use(op, f"of {tensor.layout} tensors")
