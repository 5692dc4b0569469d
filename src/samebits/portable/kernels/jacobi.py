"""Jacobi rotations ("Eigenvalues and singular values" in docs/reference/portable-numerics.md).

Neighbouring rows rotate and are swapped, even pairs and odd pairs in turn. After as many stages as there are
rows, every two rows have met once. All pairs of a stage rotate together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from samebits.portable._tensors import as_array, as_tensor
from samebits.portable.kernels.reductions import sum_products_over

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.reference.fma import Array

MOST_SWEEPS = 60
SMALLEST = 2.0**-900  # a squared norm below it has lost digits: such a row counts as zero
_BLOCK = 8192  # how many numbers of each row of a pair are rotated at once: what stays in the cache


class Problem(NamedTuple):
    """The rows to rotate, and when to stop.

    Args:
        rows: (batch, n, width), float64, contiguous; the matrix, then the rotations so far, side by side.
        width: how many columns the matrix has.
        limits: (batch,) the products of pairs that are left as they are, for a symmetric matrix.
        tolerance: the cosine of pairs that are left as they are, for any other.
    """

    rows: Tensor
    width: int
    limits: Tensor | None
    tolerance: float


def rotate(problem: Problem) -> Tensor:
    """Rotate the rows in place, until no pair of a matrix needs it.

    For a symmetric matrix A the rows become [V^T A, V^T], with V^T A V diagonal. For any other its rows
    become orthogonal to each other.

    Args:
        problem: what to rotate, and when to stop.

    Returns:
        the numbers of the matrices that were not done after `MOST_SWEEPS` sweeps.
    """
    rows = problem.rows
    active = torch.arange(rows.shape[0])
    for _ in range(MOST_SWEEPS):
        if not active.numel():
            break
        part = problem._replace(
            rows=rows[active], limits=None if problem.limits is None else problem.limits[active]
        )
        turned = _sweep(part)
        # One that has nothing to rotate keeps the order of its rows, whatever else is in the batch.
        rows[active[turned]] = part.rows[turned]
        active = active[turned]
    return active


def _sweep(problem: Problem) -> Tensor:
    """Rotate all pairs once; return which matrices had a pair to rotate."""
    batch, n, length = problem.rows.shape
    turned = np.zeros(batch, dtype=np.bool_)
    rows = as_array(problem.rows)
    block = max(1, _BLOCK // max(1, batch * length))
    scratch = np.empty((3, batch, min(block, n // 2), length))
    for stage in range(n):
        first, second = slice(stage % 2, n - 1, 2), slice(stage % 2 + 1, n, 2)
        cosine, sine, wanted = _angles(problem, first, second)
        turned |= wanted.any(1)
        for start in range(0, wanted.shape[1], block):
            part = slice(start, start + block)
            angle = (cosine[:, part, None], sine[:, part, None])
            _turn(rows[:, first][:, part], rows[:, second][:, part], angle, scratch)
    return as_tensor(turned)


def _angles(problem: Problem, first: slice, second: slice) -> tuple[Array, Array, Array]:
    """Return cosine and sine for each pair, and which pairs rotate."""
    width, limits = problem.width, problem.limits
    left = problem.rows[..., :width]
    right = left if limits is None else problem.rows[..., width:]
    p, q, product = (
        as_array(sum_products_over(left[:, one], right[:, other], -1))
        for one, other in ((first, first), (second, second), (first, second))
    )
    if limits is None:
        wanted = np.abs(product) > (np.sqrt(p) * np.sqrt(q)) * problem.tolerance
        wanted &= (p > SMALLEST) & (q > SMALLEST)
    else:
        wanted = np.abs(product) > as_array(limits)[:, None]
    ratio = (q - p) / np.where(wanted, product * 2, 1.0)
    tangent = 1.0 / (np.abs(ratio) + np.sqrt(ratio * ratio + 1.0))
    tangent = np.where(wanted, np.where(ratio < 0, -tangent, tangent), 0.0)
    cosine = 1.0 / np.sqrt(tangent * tangent + 1.0)
    return cosine, cosine * tangent, wanted


def _turn(first: Array, second: Array, angle: tuple[Array, Array], scratch: Array) -> None:
    """Set (first, second) to (s first + c second, c first - s second): rotated and swapped."""
    cosine, sine = angle
    a, b, c = scratch[:, :, : first.shape[1]]
    np.multiply(first, cosine, out=a)
    np.multiply(second, sine, out=b)
    np.multiply(first, sine, out=c)
    np.multiply(second, cosine, out=second)
    np.add(c, second, out=first)
    np.subtract(a, b, out=second)
