"""Reductions of segments: `segment_reduce` ("Segments" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels.reductions import accumulate_

if TYPE_CHECKING:
    from torch import Tensor

_KINDS = {"sum": "add", "mean": "add", "prod": "multiply", "max": "largest", "min": "smallest"}
_INITIAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


@dataclass(frozen=True)
class _Segments:
    """Which segment each position along the axis belongs to.

    Args:
        of: (batch, positions): the number of the segment, -1 for none.
        counts: (batch, segments).
        columns: the number of elements at one position.
    """

    of: Tensor
    counts: Tensor
    columns: int

    def flat(self, data: Tensor) -> Tensor:
        """Return a tensor of the data's shape as (batch, positions, columns)."""
        return data.reshape(*self.of.shape, self.columns)

    def flat_results(self, results: Tensor) -> Tensor:
        """Return a tensor of the result's shape as (batch, segments, columns)."""
        return results.reshape(*self.counts.shape, self.columns)

    def index(self) -> Tensor:
        """Return the segment of each element of the data; those of none are -1."""
        return self.of[:, :, None].expand(*self.of.shape, self.columns)

    def spread(self, results: Tensor) -> Tensor:
        """Return for each element of the data the value of its segment."""
        return self.flat_results(results).gather(1, self.index().clamp(min=0))


def _segments(data: Tensor, lengths: Tensor | None, offsets: Tensor | None, axis: int) -> _Segments:
    axis = axis % data.dim()
    if offsets is None:
        if lengths is None:
            raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
        starts = torch.zeros((*lengths.shape[:-1], 1), dtype=torch.int64, device=lengths.device)
        bounds = torch.cat([starts, lengths.to(torch.int64).cumsum(-1)], -1)
    else:
        bounds = offsets.to(torch.int64)
    batch = math.prod(data.shape[:axis])
    bounds = bounds.reshape(batch, bounds.shape[-1])
    position = torch.arange(data.shape[axis], device=data.device).expand(batch, -1).contiguous()
    segment = torch.searchsorted(bounds.contiguous(), position, right=True) - 1
    segment = torch.where(position < bounds[:, -1:], segment, -1)
    return _Segments(segment, bounds.diff(dim=-1), math.prod(data.shape[axis + 1 :]))


@handles("aten::segment_reduce")
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Compute `aten::segment_reduce`: from the initial value, elements in ascending order."""
    del indices, unsafe
    segments = _segments(data, lengths, offsets, axis)
    start = _INITIAL[reduce] if initial is None else initial
    out = data.new_full((*segments.counts.shape, segments.columns), start)
    accumulate_(out, segments.index(), segments.flat(data), _KINDS[reduce], skip=True)
    if reduce == "mean":
        counts = segments.counts[:, :, None]
        empty = math.nan if initial is None else out
        out = torch.where(counts > 0, out / counts, empty)
    axis = axis % data.dim()
    return out.reshape(*data.shape[:axis], segments.counts.shape[1], *data.shape[axis + 1 :])


@handles("aten::_segment_reduce_backward")
def segment_reduce_backward(
    grad: Tensor,
    output: Tensor,
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    initial: float | None = None,
) -> Tensor:
    """Compute `aten::_segment_reduce_backward`: 0 for what belongs to no segment."""
    segments = _segments(data, lengths, offsets, axis)
    spread = segments.spread(grad)
    if reduce == "mean":
        spread = spread / segments.spread(
            segments.counts[:, :, None].expand(*segments.counts.shape, segments.columns)
        )
    elif reduce in {"max", "min"}:
        spread = _of_extremes(segments, spread, segments.spread(output), segments.flat(data))
    elif reduce == "prod":
        start = 1.0 if initial is None else initial
        spread = _of_products(segments, spread, (segments.spread(output), segments.flat(data)), start)
    out = torch.where(segments.index() >= 0, spread, 0)
    return out.reshape(data.shape)


def _of_extremes(segments: _Segments, grad: Tensor, best: Tensor, data: Tensor) -> Tensor:
    """Return the gradient of the elements that are the extreme: each has an equal share."""
    chosen = ((data == best) | data.isnan()) & (segments.index() >= 0)
    shape = (*segments.counts.shape, segments.columns)
    shares = torch.zeros(shape, dtype=data.dtype, device=data.device)
    accumulate_(shares, segments.index(), chosen.to(data.dtype), skip=True)
    return torch.where(chosen, grad / segments.spread(shares), 0)


def _of_products(segments: _Segments, grad: Tensor, made: tuple[Tensor, Tensor], start: float) -> Tensor:
    """Return (gradient · product) / element, or gradient · the product of the others where that says nothing.

    Args:
        segments: of the data.
        grad: for each element, of its segment's product.
        made: that product and the element itself.
        start: the first factor of each product.
    """
    product, data = made
    out = (grad * product) / data
    unknown = (data.isnan() | (data == 0)) & (segments.index() >= 0)
    for n, m, c in unknown.nonzero().tolist():
        others = (segments.of[n] == segments.of[n, m]).nonzero().reshape(-1).tolist()
        factors = [data[n, other, c] for other in others if other != m]
        out[n, m, c] = grad[n, m, c] * functools.reduce(operator.mul, factors, data.new_full((), start))
    return out
