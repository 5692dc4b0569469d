"""`tensor[indices] = values` and `tensor[indices] += values` with index tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels.accumulate import accumulate_
from samebits.portable.ops.checks import REAL, is_real

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
    dims, tensors = _spread(indices, self.shape)
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


def _spread(indices: Indices, shape: torch.Size) -> tuple[list[int], list[Tensor]]:
    """Return the indexed dimensions and their indices; a mask is one index for each of its dimensions."""
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
        tensors.extend(parts)
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
    flat = torch.zeros((), dtype=torch.int64)
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
    last = torch.full((1, rows.shape[0], 1), -1.0, dtype=torch.float64)
    order = torch.arange(index.numel()).to(torch.float64)
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
