"""Factors of matrices and triangular systems.

See "QR" and "Linear algebra" in docs/reference/portable-numerics.md.
All take float32 or float64 matrices, (batch, rows, columns).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from samebits.portable.backends import backend_of

if TYPE_CHECKING:
    from torch import Tensor


class Reflections(NamedTuple):
    """Reflections 1 - tau v v^T, the j-th one of the rows from j on.

    Args:
        v: (batch, count, rows), contiguous; v[:, j, j] is 1, and what is before it has no meaning.
        tau: (batch, count), contiguous.
    """

    v: Tensor
    tau: Tensor


def factored(a: Tensor) -> tuple[Tensor, Reflections]:
    """Return the upper triangles of matrices, and the reflections that make them."""
    work = a.clone(memory_format=torch.contiguous_format)
    batch, rows, columns = work.shape
    count = min(rows, columns)
    reflections = Reflections(work.new_zeros((batch, count, rows)), work.new_empty((batch, count)))
    if work.numel():
        backend_of(work).reflect_columns(work, reflections)
    return work, reflections


def product(reflections: Reflections, like: Tensor) -> Tensor:
    """Return the first columns of the product of all reflections, of the shape and dtype of `like`."""
    unit = torch.eye(*like.shape[1:], dtype=like.dtype, device=like.device)
    q = unit.expand(like.shape).contiguous()
    if q.numel() and reflections.v.numel():
        backend_of(q).multiply_reflections(reflections, q)
    return q


def cholesky(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower factors, and for each matrix 1 + the first column that fails, or 0.

    Args:
        a: contiguous.
    """
    out, info = torch.zeros_like(a), torch.zeros(a.shape[0], dtype=torch.int64, device=a.device)
    if a.numel():
        backend_of(a).cholesky(a, out, info)
    return out, info.to(torch.int32)


def lu_(a: Tensor, *, pivot: bool) -> tuple[Tensor, Tensor]:
    """Write both factors over a; return the pivots, and for each matrix 1 + the first that is 0, or 0.

    Args:
        a: contiguous.
        pivot: whether rows change places.
    """
    pivots = torch.zeros((a.shape[0], min(a.shape[1:])), dtype=torch.int64, device=a.device)
    info = torch.zeros(a.shape[0], dtype=torch.int64, device=a.device)
    if a.numel():
        backend_of(a).lu(a, pivots, info, pivot=pivot)
    return pivots.to(torch.int32), info.to(torch.int32)


def solve_triangular(a: Tensor, b: Tensor, *, upper: bool, unit: bool) -> Tensor:
    """Return x with a x = b.

    Args:
        a: of any strides.
        b: of any strides.
        upper: which triangle of a is meant.
        unit: whether its diagonal is taken as ones.
    """
    x = b.clone(memory_format=torch.contiguous_format)
    if x.numel():
        backend_of(x).solve_triangular(a, x, upper=upper, unit=unit)
    return x
