"""Softmax of COO tensors, whose elements that are not stored count as -inf ("Sparse tensors")."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from samebits.portable._refusals import refuse_use
from samebits.portable._registry import handles_sparse
from samebits.portable._tensors import raised
from samebits.portable.kernels.attention import softmax as dense_softmax
from samebits.portable.kernels.attention import softmax_gradient
from samebits.portable.kernels.elementwise import unary
from samebits.portable.kernels.reductions import accumulate_
from samebits.portable.ops.sparse import Entries, coalesce, entries_of, sparse_mask

if TYPE_CHECKING:
    from torch import Tensor

SECTION = "Sparse"


@dataclass(frozen=True)
class _Pools:
    """The entries that share a softmax: those with the same index but for one dimension.

    Args:
        of: int64, the pool of each entry.
        count: of pools.
    """

    of: Tensor
    count: int

    def total(self, values: Tensor, kind: str = "add", start: float = 0.0) -> Tensor:
        """Return for each entry what the values (entries, columns) of its pool come to."""
        out = values.new_full((1, self.count, values.shape[1]), start)
        accumulate_(out, self.of[None, :, None].expand(1, *values.shape), values[None].contiguous(), kind)
        return out[0].index_select(0, self.of)


def _pools(entries: Entries, dim: int) -> _Pools:
    others = [d for d in range(len(entries.sizes)) if d != dim]
    sizes = torch.Size(entries.sizes[d] for d in others)
    index = entries.indices[torch.tensor(others, dtype=torch.int64, device=entries.indices.device)]
    keys, pool_of = torch.unique(Entries(index, entries.values, sizes, False).keys(), return_inverse=True)
    return _Pools(pool_of, keys.numel())


def _softmax(tensor: Tensor, dim: int, *, half_to_float: bool, log: bool) -> Tensor:
    name = "_sparse_log_softmax" if log else "_sparse_softmax"
    _check(tensor, name)
    if half_to_float:
        raise refuse_use(name, "with half_to_float")
    whole = coalesce(tensor)
    entries, dim = entries_of(whole, name), dim % whole.dim()
    if dim >= len(entries.sizes):
        made = dense_softmax(raised(entries.values), dim - len(entries.sizes) + 1, log)
        return _like(whole, made.to(tensor.dtype))
    x, pools = raised(entries.columns()), _pools(entries, dim)
    less = x - pools.total(x, "largest", -math.inf)
    powers = unary("exp", less)
    total = pools.total(powers)
    made = less - unary("log", total) if log else powers / total
    return _like(whole, made.reshape(entries.values.shape).to(tensor.dtype))


def _gradient(given: Tensor, output: Tensor, dim: int, *, log: bool) -> Tensor:
    name = "_sparse_log_softmax_backward_data" if log else "_sparse_softmax_backward_data"
    _check(output, name)
    whole = coalesce(output)
    entries, dim = entries_of(whole, name), dim % whole.dim()
    gradient = raised(_at(given, whole))
    if dim >= len(entries.sizes):
        made = softmax_gradient(gradient, raised(entries.values), dim - len(entries.sizes) + 1, log)
        return _like(whole, made.to(output.dtype))
    y, pools = raised(entries.columns()), _pools(entries, dim)
    g = gradient.reshape(y.shape)
    made = g - unary("exp", y) * pools.total(g) if log else (g - pools.total(g * y)) * y
    return _like(whole, made.reshape(entries.values.shape).to(output.dtype))


def _at(gradient: Tensor, whole: Tensor) -> Tensor:
    """Return the gradient at the entries of a coalesced tensor, 0 where it has none."""
    if gradient.layout == torch.sparse_coo:
        gradient = coalesce(gradient)
    return sparse_mask(gradient, whole)._values()


def _like(whole: Tensor, values: Tensor) -> Tensor:
    return torch.sparse_coo_tensor(
        whole._indices(), values, whole.shape, is_coalesced=True, check_invariants=False
    )


def _check(tensor: Tensor, name: str) -> None:
    if tensor.layout != torch.sparse_coo:
        raise refuse_use(name, f"of {tensor.layout} tensors")


@handles_sparse("aten::_sparse_softmax")
def sparse_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Compute `aten::_sparse_softmax`."""
    return _softmax(self, dim, half_to_float=half_to_float, log=False)


@handles_sparse("aten::_sparse_log_softmax")
def sparse_log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Compute `aten::_sparse_log_softmax`."""
    return _softmax(self, dim, half_to_float=half_to_float, log=True)


@handles_sparse("aten::_sparse_softmax_backward_data")
def sparse_softmax_backward(grad_output: Tensor, output: Tensor, dim: int, self: Tensor) -> Tensor:
    """Compute `aten::_sparse_softmax_backward_data`."""
    del self
    return _gradient(grad_output, output, dim, log=False)


@handles_sparse("aten::_sparse_log_softmax_backward_data")
def sparse_log_softmax_backward(grad_output: Tensor, output: Tensor, dim: int, self: Tensor) -> Tensor:
    """Compute `aten::_sparse_log_softmax_backward_data`."""
    del self
    return _gradient(grad_output, output, dim, log=True)
