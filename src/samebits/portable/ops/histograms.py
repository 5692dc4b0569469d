"""Histograms with edges, `histogram` and `histogramdd` (docs/reference/portable-numerics.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels.reductions import accumulate_, sum_over
from samebits.portable.ops.conversions import linspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    Range = Sequence[float] | None


@handles("aten::histogram.bin_ct")
def histogram_of_count(
    self: Tensor, bins: int = 100, *, range: Range = None, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    """Compute `aten::histogram.bin_ct`."""
    edges = _edges(self.reshape(-1), bins, range)
    return _counted(self.reshape(-1, 1), [edges], weight, density), edges


@handles("aten::histogram.bins_tensor")
def histogram_of_edges(
    self: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    """Compute `aten::histogram.bins_tensor`."""
    edges = bins.clone(memory_format=torch.contiguous_format)
    return _counted(self.reshape(-1, 1), [edges], weight, density), edges


@handles("aten::_histogramdd_bin_edges")
def edges_of_counts(
    self: Tensor,
    bins: Sequence[int],
    *,
    range: Range = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> list[Tensor]:
    """Compute `aten::_histogramdd_bin_edges`: the edges along each dimension of the points."""
    del weight, density
    points = self.reshape(-1, self.shape[-1])
    ranges = [None] * len(bins) if range is None else [range[2 * d : 2 * d + 2] for d, _ in enumerate(bins)]
    return [_edges(points[:, d], count, ranges[d]) for d, count in enumerate(bins)]


@handles("aten::_histogramdd_from_bin_cts")
def histogram_of_counts(
    self: Tensor,
    bins: Sequence[int],
    *,
    range: Range = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Tensor:
    """Compute `aten::_histogramdd_from_bin_cts`."""
    edges = edges_of_counts(self, bins, range=range)
    return _counted(self.reshape(-1, self.shape[-1]), edges, weight, density)


@handles("aten::_histogramdd_from_bin_tensors")
def histogram_of_edge_lists(
    self: Tensor, bins: Sequence[Tensor], *, weight: Tensor | None = None, density: bool = False
) -> Tensor:
    """Compute `aten::_histogramdd_from_bin_tensors`."""
    edges = [one.contiguous() for one in bins]
    return _counted(self.reshape(-1, self.shape[-1]), edges, weight, density)


def _edges(x: Tensor, bins: int, given: Range) -> Tensor:
    """Return the edges of `bins` equal bins, in the dtype of x."""
    if given is not None:
        low, high = given
    elif x.numel():
        low, high = float(x.min()), float(x.max())
    else:
        low, high = 0.0, 1.0
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        raise RuntimeError(f"histogram from {low} to {high}: a finite range was expected")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)


def _counted(points: Tensor, edges: Sequence[Tensor], weight: Tensor | None, density: bool) -> Tensor:
    """Return the histogram of points: how many are in each bin, or the sums of their weights.

    Args:
        points: (points, dimensions).
        edges: of each dimension, ascending.
        weight: of each point.
        density: whether to divide by the sum, and by the sizes of the bins.
    """
    shape = [one.numel() - 1 for one in edges]
    inside, place = _places(points, edges)
    size = math.prod(shape)
    if weight is None:
        out = torch.bincount(place[inside], minlength=size).to(points.dtype)
    else:
        out = points.new_zeros((1, size, 1))
        accumulate_(out, place[inside][None, :, None], weight.reshape(-1)[inside][None, :, None])
    out = out.reshape(shape)
    if density:
        out = out / sum_over(out, None)
        for d, one in enumerate(edges):
            out = out / one.diff().reshape([-1 if d == other else 1 for other, _ in enumerate(edges)])
    return out


def _places(points: Tensor, edges: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return which points are in a bin, and the number of that bin, row-major over the dimensions."""
    inside = torch.ones(points.shape[0], dtype=torch.bool, device=points.device)
    place = torch.zeros(points.shape[0], dtype=torch.int64, device=points.device)
    for column, one in zip(points.unbind(1), edges, strict=True):
        at = torch.searchsorted(one, column.contiguous(), right=True) - 1
        at = at.clamp(max=one.numel() - 2)  # the last edge belongs to the last bin
        inside &= (column >= one[0]) & (column <= one[-1])
        place = place * (one.numel() - 1) + at
    return inside, place
