"""Factors of matrices and triangular systems.

See "QR" and "Linear algebra" in docs/reference/portable-numerics.md.
All take float32 or float64 matrices, (batch, rows, columns), and work in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from samebits.portable.reference.contractions import gemm

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array


def reflect_columns(work: Array, v: Array, tau: Array) -> None:
    """Make the upper triangle of `work`; v and tau are of the reflections that make it."""
    for j in range(tau.shape[1]):
        v[:, j, j:], tau[:, j], beta = _reflection(work[:, j:, j])
        _reflect(work[:, j:, j + 1 :], v[:, j, j:], tau[:, j])
        work[:, j, j] = beta
        work[:, j + 1 :, j] = 0


def multiply_reflections(v: Array, tau: Array, q: Array) -> None:
    """Multiply q, which is the unit matrix, by all reflections, the last one first."""
    for j in reversed(range(tau.shape[1])):
        _reflect(q[:, j:, j:], v[:, j, j:], tau[:, j])


def _reflection(x: Array) -> tuple[Array, Array, Array]:
    """Return v with v[0] = 1, tau and beta for each row x: (1 - tau v v^T) x is beta and zeros."""
    alpha, rest = x[:, 0].copy(), x[:, 1:].copy()
    squares = gemm(rest[:, None], rest[:, :, None])[:, 0, 0]
    turned = squares != 0
    v = np.ones_like(x)
    with np.errstate(all="ignore"):
        root = np.sqrt(alpha * alpha + squares)
        beta = np.where(turned, np.where(alpha < 0, root, -root), alpha)
        v[:, 1:] = np.where(turned[:, None], rest / (alpha - beta)[:, None], 0)
        tau = np.where(turned, (beta - alpha) / beta, 0)
    return v, tau, beta


def _reflect(work: Array, v: Array, tau: Array) -> None:
    """Subtract (tau v) times (v^T work) from `work`."""
    with np.errstate(all="ignore"):
        work -= (v * tau[:, None])[:, :, None] * gemm(v[:, None], work)


def cholesky(a: Array, out: Array, info: Array) -> None:
    """Write the lower factors into zeros, and 1 + the first column that fails into `info`."""
    for j in range(a.shape[1]):
        column = a[:, j:, j]
        with np.errstate(all="ignore"):
            if j:
                column = column - gemm(out[:, j:, :j], out[:, j, :j, None])[:, :, 0]
            root = np.sqrt(column[:, :1])
            out[:, j:, j] = column / root
        out[:, j, j] = root[:, 0]
        info[~(column[:, 0] > 0) & (info == 0)] = j + 1


def lu(a: Array, pivots: Array, info: Array, *, pivot: bool) -> None:
    """Write both factors over a; the first of the largest values is pivot."""
    for k in range(pivots.shape[1]):
        _take_sums(a[:, k:, k : k + 1], a[:, k:, :k], a[:, :k, k : k + 1])
        largest = np.abs(a[:, k:, k]).argmax(1) + k if pivot else np.full(a.shape[0], k)
        pivots[:, k] = largest + 1
        for matrix, one in zip(a, largest, strict=True):
            matrix[[k, one]] = matrix[[one, k]]
        _take_sums(a[:, k : k + 1, k + 1 :], a[:, k : k + 1, :k], a[:, :k, k + 1 :])
        top = a[:, k, k, None]
        info[(top[:, 0] == 0) & (info == 0)] = k + 1
        with np.errstate(all="ignore"):
            a[:, k + 1 :, k] = np.where(top == 0, a[:, k + 1 :, k], a[:, k + 1 :, k] / top)


def solve_triangular(a: Array, x: Array, *, upper: bool, unit: bool) -> None:
    """Write the solution over x, row by row from the one with a single unknown."""
    n = a.shape[1]
    for i in reversed(range(n)) if upper else range(n):
        known = slice(i + 1, n) if upper else slice(0, i)
        _take_sums(x[:, i : i + 1], a[:, i : i + 1, known], x[:, known])
        if not unit:
            with np.errstate(all="ignore"):
                x[:, i] /= a[:, i, i, None]


def _take_sums(x: Array, a: Array, b: Array) -> None:
    """Subtract a b from x, once."""
    if a.shape[2]:
        with np.errstate(all="ignore"):
            x -= gemm(a, b)
