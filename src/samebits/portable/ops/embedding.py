"""Embeddings: gradients of tables, and bags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels.contractions import gemm
from samebits.portable.kernels.reductions import accumulate_
from samebits.portable.ops.reductions import vector_norm

if TYPE_CHECKING:
    from torch import Tensor

    Bags = tuple[Tensor, Tensor, Tensor, Tensor]

_SUM, _MEAN, _MAX = 0, 1, 2


@handles("aten::embedding_dense_backward")
def embedding_dense_backward(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """Compute `aten::embedding_dense_backward`; scale_grad_by_freq divides each gradient by its count."""
    flat = indices.reshape(-1).to(torch.int64)
    grad = grad_output.reshape(flat.numel(), grad_output.shape[-1])
    if scale_grad_by_freq and flat.numel():
        grad = grad / torch.bincount(flat)[flat].to(grad.dtype)[:, None]
    return _table_of(grad, flat, num_weights, padding_idx)


def _table_of(grad: Tensor, index: Tensor, rows: int, left_out: int) -> Tensor:
    out = torch.zeros((1, rows, grad.shape[1]), dtype=grad.dtype, device=grad.device)
    if left_out >= 0:
        index = torch.where(index == left_out, -1, index)
    accumulate_(out, index[None, :, None].expand(1, *grad.shape), grad[None], skip=True)
    return out[0]


@handles("aten::_embedding_bag", "aten::_embedding_bag_forward_only")
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Bags:
    """Compute `aten::_embedding_bag`: a bag's weighted rows are added in the order of `indices`."""
    del scale_grad_by_freq, sparse  # for the gradient
    indices, offsets = indices.to(torch.int64), offsets.to(torch.int64)
    if offsets.numel() and int(offsets[-1]) > indices.numel():
        raise RuntimeError(f"offsets[-1] is {int(offsets[-1])}, and there are {indices.numel()} indices")
    starts = offsets[:-1] if include_last_offset else offsets
    bags = starts.numel()
    position = torch.arange(indices.numel(), device=indices.device)
    bag_of = torch.searchsorted(starts, position, right=True) - 1
    used = indices != padding_idx
    target = torch.where(used, bag_of, -1)
    sizes = torch.bincount(bag_of[used], minlength=bags) if indices.numel() else torch.zeros_like(starts)
    rows = weight.index_select(0, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    if mode == _MAX:
        out, chosen = _largest(rows, indices, target, bags)
    else:
        out = _into_bags(rows.new_zeros(1, bags, rows.shape[1]), target, rows, "add")
        chosen = sizes.clone()
    if mode == _MEAN:
        out = out / torch.where(sizes == 0, 1, sizes).to(out.dtype)[:, None]
    return out, bag_of, sizes, chosen


def _into_bags(out: Tensor, target: Tensor, rows: Tensor, kind: str) -> Tensor:
    return accumulate_(out, target[None, :, None].expand(1, *rows.shape), rows[None], kind, skip=True)[0]


def _largest(rows: Tensor, indices: Tensor, target: Tensor, bags: int) -> tuple[Tensor, Tensor]:
    """Return the largest of each bag, 0 if empty, and its row of the table: the first of equals, else -1."""
    shape, device = (1, bags, rows.shape[1]), rows.device
    lowest = torch.full(shape, -torch.inf, dtype=rows.dtype, device=device)
    best = _into_bags(lowest, target, rows, "largest")
    at = torch.where(target < 0, 0, target)
    hit = (rows == best[at]) & (target >= 0)[:, None]
    first = torch.full(shape, torch.inf, dtype=torch.float64, device=device)
    order = torch.arange(indices.numel(), device=device).to(torch.float64)[:, None].expand(hit.shape)
    order = torch.where(hit, order, torch.inf)
    first = _into_bags(first, target, order, "smallest")
    has_row = first != torch.inf
    position = torch.where(has_row, first, 0.0).to(torch.int64)
    chosen = torch.where(has_row, indices[position], -1) if indices.numel() else torch.full_like(position, -1)
    filled = torch.where(best == -torch.inf, torch.where(has_row, best, 0.0), best)
    return filled, chosen


@handles("aten::_embedding_bag_backward")
def embedding_bag_backward(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """Compute `aten::_embedding_bag_backward`: gradients are added to a row in the order of `indices`.

    With `sparse` they are the entries of a COO tensor, in that order.
    """
    del offsets
    if not sparse:
        return embedding_bag_dense_backward(
            grad,
            indices,
            offset2bag,
            bag_size,
            maximum_indices,
            num_weights,
            scale_grad_by_freq,
            mode,
            per_sample_weights,
            padding_idx,
        )
    rows = _rows_of(grad, offset2bag, bag_size if mode == _MEAN else None, per_sample_weights)
    used = indices != padding_idx
    shape = (num_weights, grad.shape[1])
    return torch.sparse_coo_tensor(indices[used][None], rows[used], shape, check_invariants=False)


@handles("aten::_embedding_bag_dense_backward")
def embedding_bag_dense_backward(
    grad: Tensor,
    indices: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """Compute `aten::_embedding_bag_dense_backward`."""
    if mode == _MAX:
        out = torch.zeros((1, num_weights, grad.shape[1]), dtype=grad.dtype, device=grad.device)
        return accumulate_(out, maximum_indices[None].to(torch.int64), grad[None], skip=True)[0]
    rows = _rows_of(grad, offset2bag, bag_size if mode == _MEAN else None, None)
    flat = indices.to(torch.int64)
    if scale_grad_by_freq and flat.numel():
        rows = rows / torch.bincount(flat)[flat].to(grad.dtype)[:, None]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    return _table_of(rows, flat, num_weights, padding_idx)


def _rows_of(grad: Tensor, bag_of: Tensor, counts: Tensor | None, weights: Tensor | None) -> Tensor:
    """Return the gradient of the row of the table that each index chose."""
    if counts is not None:
        grad = grad / torch.where(counts == 0, 1, counts).to(grad.dtype)[:, None]
    rows = grad.index_select(0, bag_of)
    return rows if weights is None else rows * weights[:, None]


@handles("aten::embedding_renorm_")
def embedding_renorm_(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Compute `aten::embedding_renorm_`: chosen rows whose norm is larger are scaled down to it.

    By max_norm / (norm + 1e-7), computed in float64 and rounded to the dtype of the table.
    """
    rows = torch.unique(indices)
    chosen = self.index_select(0, rows)
    norms = vector_norm(chosen, norm_type, 1)
    scale = (max_norm / (norms.to(torch.float64) + 1e-7)).to(chosen.dtype)
    large = norms > max_norm
    self[rows[large]] = chosen[large] * scale[large][:, None]
    return self


@handles("aten::_embedding_bag_per_sample_weights_backward")
def embedding_bag_per_sample_weights_backward(
    grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Tensor:
    """Compute `aten::_embedding_bag_per_sample_weights_backward`: contractions over the columns."""
    del offsets, mode
    rows = weight.index_select(0, indices.to(torch.int64))
    out = gemm(grad.index_select(0, offset2bag)[:, None, :], rows[:, :, None]).reshape(-1)
    return torch.where(indices == padding_idx, 0.0, out)
