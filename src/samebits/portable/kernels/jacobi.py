"""Jacobi rotations ("Eigenvalues and singular values" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from samebits.portable.backends import backend_of

if TYPE_CHECKING:
    from torch import Tensor

MOST_SWEEPS = 60
SMALLEST = 2.0**-900  # a squared norm below it has lost digits: such a row counts as zero


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
    done = torch.ones(problem.rows.shape[0], dtype=torch.int64, device=problem.rows.device)
    if problem.rows.numel():
        backend_of(problem.rows).rotate(problem, MOST_SWEEPS, done)
    return (done == 0).nonzero().reshape(-1)
