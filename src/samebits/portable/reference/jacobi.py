"""Jacobi rotations ("Eigenvalues and singular values" in docs/reference/portable-numerics.md).

Neighbouring rows rotate and are swapped, even pairs and odd pairs in turn. After as many stages as there are
rows, every two rows have met once. All pairs of a stage rotate together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from samebits.portable.reference.reductions import sum_products_over

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array

SMALLEST = 2.0**-900


class Rows(NamedTuple):
    """The rows to rotate, as in `kernels.jacobi.Problem`."""

    rows: Array
    width: int
    limits: Array | None
    tolerance: float


def rotate(problem: Rows, most_sweeps: int) -> Array:
    """Rotate the rows in place, until no pair of a matrix needs it.

    Args:
        problem: what to rotate, and when to stop.
        most_sweeps: how many sweeps to try.

    Returns:
        for each matrix, whether it is done.
    """
    rows = problem.rows
    active = np.arange(rows.shape[0])
    for _ in range(most_sweeps):
        if not active.size:
            break
        part = problem._replace(
            rows=rows[active], limits=None if problem.limits is None else problem.limits[active]
        )
        turned = _sweep(part)
        # One that has nothing to rotate keeps the order of its rows, whatever else is in the batch.
        rows[active[turned]] = part.rows[turned]
        active = active[turned]
    done = np.ones(rows.shape[0], dtype=np.bool_)
    done[active] = False
    return done


def _sweep(problem: Rows) -> Array:
    """Rotate all pairs once; return which matrices had a pair to rotate."""
    batch, n, _ = problem.rows.shape
    turned = np.zeros(batch, dtype=np.bool_)
    for stage in range(n):
        first, second = slice(stage % 2, n - 1, 2), slice(stage % 2 + 1, n, 2)
        cosine, sine, wanted = _angles(problem, first, second)
        turned |= wanted.any(1)
        x, y = problem.rows[:, first], problem.rows[:, second].copy()
        c, s = cosine[..., None], sine[..., None]
        problem.rows[:, second] = c * x - s * y
        problem.rows[:, first] = s * x + c * y
    return turned


def _angles(problem: Rows, first: slice, second: slice) -> tuple[Array, Array, Array]:
    """Return cosine and sine for each pair, and which pairs rotate."""
    width, limits = problem.width, problem.limits
    left = problem.rows[..., :width]
    right = left if limits is None else problem.rows[..., width:]
    p, q, product = (
        sum_products_over(left[:, one], right[:, other], (2,))
        for one, other in ((first, first), (second, second), (first, second))
    )
    if limits is None:
        wanted = np.abs(product) > (np.sqrt(p) * np.sqrt(q)) * problem.tolerance
        wanted &= (p > SMALLEST) & (q > SMALLEST)
    else:
        wanted = np.abs(product) > limits[:, None]
    with np.errstate(over="ignore"):
        ratio = (q - p) / np.where(wanted, product * 2, 1.0)
        tangent = 1.0 / (np.abs(ratio) + np.sqrt(ratio * ratio + 1.0))
    tangent = np.where(wanted, np.where(ratio < 0, -tangent, tangent), 0.0)
    cosine = 1.0 / np.sqrt(tangent * tangent + 1.0)
    return cosine, cosine * tangent, wanted
