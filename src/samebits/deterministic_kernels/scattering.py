"""Ops that put values at positions, or multiply and compare what meets there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from samebits.deterministic_kernels.precision import exact_dtype
from samebits.deterministic_kernels.unfit import UnfitError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor

_MAX_MODE = 2  # of EmbeddingBag
_SEGMENTS = {"prod": "prod", "amax": "max", "amin": "min"}
_TWO: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "prod": torch.mul,
    "amax": torch.maximum,
    "amin": torch.minimum,
}


def _fold(groups: Tensor, values: Tensor, start: Tensor, reduce: str, *, include_self: bool) -> Tensor:
    """Multiply or compare the values of each group, in ascending order of their positions.

    Args:
        groups: int64 of (values), which row of `start` each belongs to.
        values: of (values, columns).
        start: of (groups, columns); a row stays where there is no value for it.
        reduce: `prod`, `amax` or `amin`.
        include_self: whether the row of `start` comes before the values.
    """
    size = len(start)
    counts = torch.zeros(size, dtype=torch.int64, device=groups.device)
    counts.index_add_(0, groups, torch.ones_like(groups))
    if include_self:
        groups = torch.cat([torch.arange(size, device=groups.device), groups])
        values = torch.cat([start, values])
    order = torch.argsort(groups, stable=True)
    groups, values = groups[order], values.index_select(0, order)
    bounds = torch.searchsorted(groups, torch.arange(size + 1, device=groups.device))
    if values.is_floating_point():
        exact = values.to(exact_dtype(values.dtype))
        folded = torch.segment_reduce(exact, _SEGMENTS[reduce], offsets=bounds, axis=0, unsafe=True)
    else:
        scanned = _scan(groups, values, _TWO[reduce])
        folded = scanned.index_select(0, (bounds[1:] - 1).clamp(min=0))
    return torch.where(counts.unsqueeze(1) > 0, folded.to(start.dtype), start)


def _scan(groups: Tensor, values: Tensor, two: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Return for each value its group's result up to there: each time, of twice as many values."""
    reach = 1
    while reach < len(groups):
        same = (groups[reach:] == groups[:-reach]).unsqueeze(1)
        joined = torch.where(same, two(values[reach:], values[:-reach]), values[reach:])
        values = torch.cat([values[:reach], joined])
        reach *= 2
    return values


def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Multiply values into their positions. torch's own kernels of the other reductions are deterministic."""
    if reduce != "prod":
        raise UnfitError
    return _scattered_product(self, dim, index, src, include_self=include_self)


def scatter_with(self: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor:
    """Add or multiply values into their positions."""
    if reduce not in {"add", "multiply"}:
        raise RuntimeError("reduce argument must be either add or multiply.")
    if reduce == "add":
        return torch.scatter_add(self, dim, index, src)
    return _scattered_product(self, dim, index, src, include_self=True)


def scatter_value_with(self: Tensor, dim: int, index: Tensor, value: float, *, reduce: str) -> Tensor:
    """Add or multiply one number into positions."""
    src = torch.full(index.shape, value, dtype=self.dtype, device=self.device)
    return scatter_with(self, dim, index, src, reduce=reduce)


def _scattered_product(self: Tensor, dim: int, index: Tensor, src: Tensor, *, include_self: bool) -> Tensor:
    if src.dtype != self.dtype:
        raise UnfitError
    if self.dim() == 0:
        flat = self.reshape(1), 0, index.reshape(-1), src.reshape(-1)
        return _scattered_product(*flat, include_self=include_self).reshape(())
    if not index.numel():
        return self.clone()
    self.gather(dim, index)  # torch says what does not fit, or is out of bounds
    groups = _positions(self, dim % self.dim(), index).reshape(-1)
    values = src[tuple(slice(size) for size in index.shape)].reshape(-1, 1)
    return _fold(groups, values, self.reshape(-1, 1), "prod", include_self=include_self).reshape(self.shape)


def _positions(self: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return where the elements of a scatter lie in the flattened tensor."""
    flat = torch.zeros((), dtype=torch.int64, device=index.device)
    for d, size in enumerate(self.shape):
        at = torch.arange(index.shape[d], device=index.device).reshape([-1] + [1] * (index.dim() - d - 1))
        flat = flat * size + (index if d == dim else at)
    return flat


def index_reduce(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Multiply, average or compare slices of `source` into those of `self`."""
    if reduce not in {*_SEGMENTS, "mean"} or source.dtype != self.dtype:
        raise UnfitError
    if self.dim() == 0:
        flat = self.reshape(1), 0, index.reshape(-1), source.reshape(-1), reduce
        return index_reduce(*flat, include_self=include_self).reshape(())
    if not -self.dim() <= dim < self.dim() or index.dim() > 1:
        raise IndexError(
            f"index_reduce() of {self.dim()} dimensions: dim is {dim}, the index has {index.dim()}"
        )
    dim %= self.dim()
    index = index.reshape(-1)
    if self.index_select(dim, index).shape != source.shape:  # which says what is out of bounds
        raise UnfitError
    if not source.numel():
        return self.clone()
    front = self.movedim(dim, 0)
    rows = front.reshape(len(front), -1)
    values = source.movedim(dim, 0).reshape(len(index), -1)
    if reduce == "mean":
        out = _mean(rows, index.to(torch.int64), values, include_self=include_self)
    else:
        out = _fold(index.to(torch.int64), values, rows, reduce, include_self=include_self)
    return out.reshape(front.shape).movedim(0, dim).contiguous()


def _mean(rows: Tensor, index: Tensor, values: Tensor, *, include_self: bool) -> Tensor:
    exact = exact_dtype(rows.dtype)
    found = torch.zeros(len(rows), 1, dtype=torch.int64, device=rows.device)
    found.index_add_(0, index, torch.ones_like(index).unsqueeze(1))
    start = rows.to(exact) if include_self else torch.zeros_like(rows, dtype=exact)
    total = start.index_add(0, index, values.to(exact))
    rounding = None if rows.is_floating_point() else "floor"
    mean = torch.div(total, (found + include_self).clamp(min=1), rounding_mode=rounding)
    return torch.where(found > 0, mean.to(rows.dtype), rows)


def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Put values at flat positions, in place; the last of several at one position stays, or all are added."""
    if index.dtype != torch.int64 or source.dtype != self.dtype or index.numel() != source.numel():
        raise RuntimeError(
            f"put_() expects an int64 index, and as many values of {self.dtype} as the index has; found "
            f"{index.numel()} of {index.dtype}, and {source.numel()} of {source.dtype}"
        )
    if any(size > 1 and not step for size, step in zip(self.shape, self.stride(), strict=True)):
        raise RuntimeError("put_() expects elements of their own, and found one that stands for several")
    if not index.numel():
        return self
    if not self.numel():
        raise IndexError("put_() expects no index for a tensor without elements")
    flat, count = index.reshape(-1), self.numel()
    outside = (flat < -count) | (flat >= count)
    flat = torch.where(outside, count, torch.where(flat < 0, flat + count, flat))
    target = self if self.dim() else self.reshape(1)
    target.index_put_(_places(flat, target.shape), source.reshape(-1), accumulate=accumulate)
    return self


def _places(flat: Tensor, shape: torch.Size) -> tuple[Tensor, ...]:
    """Return the index in each dimension; what is out of bounds is so in the first one."""
    rows = [flat // math.prod(shape[d + 1 :]) for d in range(len(shape))]
    return (rows[0], *(row % size for row, size in zip(rows[1:], shape[1:], strict=True)))


def embedding_bag_largest_gradient(
    grad: Tensor,
    indices: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    *rest: Any,
) -> Tensor:
    """Return the gradient of the rows of an embedding, of which bags hold the largest values.

    Args:
        grad: of the bags: (bags, columns).
        indices: the rows in all bags.
        offset2bag: the bag of each.
        bag_size: rows in each bag.
        maximum_indices: the row that each value of a bag comes from.
        *rest: the number of rows, whether gradients are scaled by frequency, the mode, and what only other
            modes need.
    """
    del indices, offset2bag
    rows, _, mode = rest[:3]
    if mode != _MAX_MODE:
        raise UnfitError
    filled = (bag_size > 0).unsqueeze(1) & (maximum_indices >= 0)
    exact = grad.to(exact_dtype(grad.dtype))
    columns = torch.arange(grad.shape[1], device=grad.device).expand_as(grad)
    out = exact.new_zeros((rows, grad.shape[1]))
    # Empty bags add zeros, each to another row.
    spare = (torch.arange(len(grad), device=grad.device) % max(rows, 1)).unsqueeze(1)
    places = torch.where(filled, maximum_indices.to(torch.int64), spare)
    out.index_put_((places, columns), torch.where(filled, exact, 0), accumulate=True)
    return out.to(grad.dtype)


KERNELS: Mapping[str, Callable[..., object]] = {
    "scatter.reduce": scatter_with,
    "scatter.value_reduce": scatter_value_with,
    "scatter_reduce.two": scatter_reduce,
    "index_reduce": index_reduce,
    "put_": put_,
    "_embedding_bag_dense_backward": embedding_bag_largest_gradient,
}
"""By name of the op; its forms in place and into a given tensor are computed by the same function."""
