"""Sums into given positions: scatter, index_add, index_put."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable._refusals import refuse_use
from samebits.portable._registry import handles
from samebits.portable._tensors import REAL, is_real
from samebits.portable.kernels.reductions import accumulate_

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    Indices = Sequence[Tensor | None]


@handles("aten::index_put", "aten::_unsafe_index_put")
def index_put(self: Tensor, indices: Indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """Compute `aten::index_put`: values in row-major order of the index; the last one stays or all are added.

    Of integers too: torch writes them from several threads, and any of them may be the last.
    """
    is_float = is_real(self, "index_put")
    if not is_float and (accumulate or all(_is_mask(index) for index in indices)):
        return torch.index_put(self, list(indices), values, accumulate=accumulate)
    dims, tensors = _spread(indices, self)
    values = values.to(self.device)
    if not dims:
        return self + values.expand(self.shape) if accumulate else values.expand(self.shape).clone()
    tensors = list(torch.ops.aten.broadcast_tensors(tensors))
    rest = [d for d in range(self.dim()) if d not in dims]
    front = self.permute(*dims, *rest).contiguous()
    source = _sources(values, front, dims, tensors[0])
    index = _flat_index(tensors, [self.shape[d] for d in dims])
    rows = front.shape[: len(dims)].numel()
    columns = front.shape[len(dims) :].numel()
    out = _put_rows(front.reshape(rows, columns), index, source, "add" if accumulate else "set")
    order = [0] * self.dim()
    for position, d in enumerate((*dims, *rest)):
        order[d] = position
    return out.reshape(front.shape).permute(order).contiguous()


def _spread(indices: Indices, indexed: Tensor) -> tuple[list[int], list[Tensor]]:
    """Return the indexed dimensions and their indices; a mask is one index for each of its dimensions."""
    shape = indexed.shape
    dims: list[int] = []
    tensors: list[Tensor] = []
    at = 0
    for index in indices:
        if index is None:
            at += 1
            continue
        parts = index.nonzero().unbind(1) if _is_mask(index) else (_as_int64(index),)
        if _is_mask(index) and index.shape != shape[at : at + index.dim()]:
            raise IndexError(f"a mask of shape {[*index.shape]} for a tensor of shape {[*shape]}")
        dims.extend(range(at, at + len(parts)))
        tensors.extend(part.to(indexed.device) for part in parts)
        at += len(parts)
    return dims, tensors


def _is_mask(index: Tensor | None) -> bool:
    return index is not None and index.dtype in (torch.bool, torch.uint8)


def _as_int64(index: Tensor) -> Tensor:
    if index.dtype not in (torch.int8, torch.int16, torch.int32, torch.int64):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return index.to(torch.int64)


def _sources(values: Tensor, front: Tensor, dims: list[int], index: Tensor) -> Tensor:
    """Return `values` as (elements of the index, elements of the dimensions that are not indexed)."""
    rest = front.shape[len(dims) :]
    adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
    at = dims[0] if adjacent else 0
    full = values.expand(*rest[:at], *index.shape, *rest[at:])
    moved = full.permute(*range(at, at + index.dim()), *range(at), *range(at + index.dim(), full.dim()))
    return moved.reshape(index.numel(), rest.numel())


def _flat_index(tensors: Sequence[Tensor], sizes: list[int]) -> Tensor:
    flat = torch.zeros((), dtype=torch.int64, device=tensors[0].device)
    for index, size in zip(tensors, sizes, strict=True):
        if index.numel():
            lowest, highest = (int(end) for end in index.aminmax())
            if lowest < -size or highest >= size:
                raise IndexError(
                    f"index {lowest if lowest < -size else highest} is out of bounds: the size is {size}"
                )
        flat = flat * size + torch.where(index < 0, index + size, index)
    return flat.reshape(-1)


def _put_rows(rows: Tensor, index: Tensor, source: Tensor, kind: str) -> Tensor:
    if rows.dtype in REAL:
        out = rows.clone(memory_format=torch.contiguous_format)
        accumulate_(out[None], index[None, :, None].expand(1, *source.shape), source[None], kind)
        return out
    # Which source stays at each row, then a move of those.
    last = torch.full((1, rows.shape[0], 1), -1.0, dtype=torch.float64, device=rows.device)
    order = torch.arange(index.numel(), device=rows.device).to(torch.float64)
    accumulate_(last, index[None, :, None], order[None, :, None], "set")
    winner = last.reshape(-1).to(torch.int64)
    taken = winner >= 0
    out = rows.clone()
    out[taken] = source[winner[taken]]
    return out


@handles("aten::_index_put_impl_")
def _index_put_impl_(
    self: Tensor, indices: Indices, values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    """Compute `aten::_index_put_impl_`."""
    del unsafe
    return self.copy_(index_put(self, indices, values, accumulate))


Number = float
_KINDS = {
    "add": "add",
    "sum": "add",
    "mean": "add",
    "multiply": "multiply",
    "prod": "multiply",
    "amax": "largest",
    "amin": "smallest",
}
_IDENTITIES = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -float("inf"), "amin": float("inf")}


@handles("aten::index_add")
def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
    """Compute `aten::index_add`: alpha · source is rounded, then added."""
    if not is_real(self, "index_add"):
        return torch.index_add(self, dim, index, source, alpha=alpha)
    _check_from_0(index)
    scaled = source if alpha == 1 else source * alpha
    return _indexed(self, dim, index, scaled, "add")


def _check_from_0(index: Tensor) -> None:
    """Raise IndexError for negative indices: here only `put` counts them from the end, as the kernel does."""
    for d, step in enumerate(index.stride()):
        index = index.narrow(d, 0, 1) if step == 0 and index.shape[d] else index
    if index.numel() and bool((index < 0).any()):
        raise IndexError(f"index {int(index.min())} is out of bounds: it counts from 0")


def _indexed(self: Tensor, dim: int, index: Tensor, source: Tensor, kind: str) -> Tensor:
    # The same as a scatter whose index is shared by all other dimensions.
    if self.dim() == 0:
        return scattered(self, 0, index.reshape(-1), source.reshape(-1), kind)
    shape = [1] * self.dim()
    shape[dim] = -1
    source = source if source.dim() else source.reshape(1)
    return scattered(self, dim, index.reshape(shape).expand(source.shape), source, kind)


def scattered(self: Tensor, dim: int, index: Tensor, src: Tensor, kind: str) -> Tensor:
    """Return `self` with each `src` taken in at its index along `dim`, in ascending order.

    Args:
        self: float32 or float64.
        dim: which dimension the index is for.
        index: int64, at most as large as `src`, and as `self` in the other dimensions.
        src: the dtype of `self`.
        kind: as `accumulate_` has them.
    """
    if self.dim() == 0 or index.dim() == 0 or src.dim() == 0:
        flat = scattered(self.reshape(-1), 0, index.reshape(-1), src.reshape(-1), kind)
        return flat.reshape(self.shape)
    out = self.clone(memory_format=torch.contiguous_format)
    if not index.numel():
        return out
    dim, index = dim % out.dim(), index.to(torch.int64)
    part = out
    for d in range(out.dim()):
        part = part if d == dim else part.narrow(d, 0, index.shape[d])
        src = src.narrow(d, 0, index.shape[d])
    target = part.contiguous()
    accumulate_(_rows(target, dim), _rows(index, dim), _rows(src, dim), kind)
    if target.data_ptr() != out.data_ptr():
        part.copy_(target)
    return out


def _rows(tensor: Tensor, dim: int) -> Tensor:
    before, after = tensor.shape[:dim].numel(), tensor.shape[dim + 1 :].numel()
    return tensor.reshape(before, tensor.shape[dim], after)


@handles("aten::scatter_add")
def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Compute `aten::scatter_add`."""
    if not is_real(self, "scatter_add"):
        return torch.scatter_add(self, dim, index, src)
    _check_from_0(index)
    return scattered(self, dim, index, src, "add")


@handles("aten::scatter.reduce")
def scatter_with(self: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor:
    """Compute `aten::scatter.reduce`: reduce is add or multiply."""
    if not is_real(self, "scatter"):
        return torch.scatter(self, dim, index, src, reduce=reduce)
    _check_from_0(index)
    return scattered(self, dim, index, src, _KINDS[reduce])


@handles("aten::scatter.value_reduce")
def scatter_value_with(self: Tensor, dim: int, index: Tensor, value: Number, *, reduce: str) -> Tensor:
    """Compute `aten::scatter.value_reduce`."""
    src = torch.full_like(index, value, dtype=self.dtype)
    return scatter_with(self, dim, index, src, reduce=reduce)


@handles("aten::scatter_reduce.two")
def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Compute `aten::scatter_reduce.two`."""
    if not is_real(self, "scatter_reduce"):
        return torch.scatter_reduce(self, dim, index, src, reduce, include_self=include_self)
    if reduce not in _IDENTITIES:
        raise refuse_use("scatter_reduce", f"with reduce={reduce!r}")
    _check_from_0(index)
    start = self if include_self else self.scatter(dim, index, _IDENTITIES[reduce])
    out = scattered(start, dim, index, src, _KINDS[reduce])
    if reduce != "mean":
        return out
    counts = torch.full_like(self, float(include_self))
    counts = scattered(counts, dim, index, torch.ones_like(index, dtype=self.dtype), "add")
    return out / torch.where(counts == 0, 1.0, counts)


@handles("aten::index_reduce")
def index_reduce(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Compute `aten::index_reduce`."""
    if not is_real(self, "index_reduce"):
        return torch.index_reduce(self, dim, index, source, reduce, include_self=include_self)
    if self.dim() == 0:
        index, source = index.reshape(()), source.reshape(())
    else:
        shape = [1] * self.dim()
        shape[dim] = -1
        index = index.reshape(shape).expand(source.shape)
    return scatter_reduce(self, dim, index, source, reduce, include_self=include_self)


@handles("aten::put")
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Compute `aten::put`: of several values for one element the last one stays."""
    if index.numel() != source.numel():
        raise IndexError(f"{index.numel()} indices for {source.numel()} values")
    if not is_real(self, "put"):
        if accumulate:
            return torch.put(self, index, source, accumulate)
        return index_put(self.reshape(-1), [index.reshape(-1)], source.reshape(-1)).reshape(self.shape)
    flat_index = torch.where(index < 0, index + self.numel(), index).reshape(-1)
    kind = "add" if accumulate else "set"
    return scattered(self.reshape(-1), 0, flat_index, source.reshape(-1), kind).reshape(self.shape)


@handles("aten::bincount")
def bincount(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Compute `aten::bincount`: weights that are not float32 are counted in float64."""
    if weights is None or not self.numel():
        return torch.bincount(self, weights, minlength)
    _check_from_0(self)
    size = max(int(self.max()) + 1, minlength)
    weights = weights if weights.dtype == torch.float32 else weights.to(torch.float64)
    return scattered(weights.new_zeros(size), 0, self.to(torch.int64), weights, "add")


@handles("aten::unfold_backward")
def unfold_backward(grad_in: Tensor, input_sizes: list[int], dim: int, size: int, step: int) -> Tensor:
    """Compute `aten::unfold_backward`: windows, and the positions of each, in ascending order."""
    if not input_sizes:
        return grad_in.reshape(-1)[:1].reshape(())
    dim %= len(input_sizes)
    windows = grad_in.movedim(-1, dim + 1).flatten(dim, dim + 1)
    starts = torch.arange(grad_in.shape[dim], device=grad_in.device)[:, None] * step
    positions = starts + torch.arange(size, device=grad_in.device)
    return index_add(grad_in.new_zeros(input_sizes), dim, positions.reshape(-1), windows)
