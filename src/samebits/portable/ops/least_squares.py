"""Least squares by SVD ("Eigenvalues and singular values" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from samebits.portable._registry import handles
from samebits.portable.kernels.gemm import gemm
from samebits.portable.kernels.reductions import sum_squares_over
from samebits.portable.ops.spectral import linalg_svd

if TYPE_CHECKING:
    from torch import Tensor

    Solved = tuple[Tensor, Tensor, Tensor, Tensor]

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@handles("aten::linalg_lstsq")
def linalg_lstsq(self: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Solved:
    """Compute `aten::linalg_lstsq`: the shortest solution; the driver decides what else is returned."""
    chosen = driver or "gelsy"
    if chosen not in _DRIVERS:
        raise RuntimeError(f"torch.linalg.lstsq: parameter `driver` should be one of {_DRIVERS}")
    is_vector = b.dim() == 1 or (self.dim() - 1 == b.dim() and self.shape[:-1] == b.shape)
    right = b.unsqueeze(-1) if is_vector else b
    rows, columns = self.shape[-2:]
    leading = np.broadcast_shapes(tuple(self.shape[:-2]), tuple(right.shape[:-2]))
    a = self.expand(*leading, rows, columns).reshape(math.prod(leading), rows, columns)
    y = right.expand(*leading, *right.shape[-2:]).reshape(a.shape[0], *right.shape[-2:])
    x, values, rank = _solved(
        a, y, torch.finfo(self.dtype).eps * max(rows, columns) if rcond is None else rcond
    )
    residuals = self.new_zeros(0)
    if rows > columns and chosen != "gelsy" and bool((rank == columns).all()):
        residuals = sum_squares_over(gemm(a, x) - y, 1).reshape(*leading, y.shape[2])
    solution = x.reshape(*leading, columns, y.shape[2])
    return (
        solution.squeeze(-1) if is_vector else solution,
        residuals,
        rank.new_zeros(0) if chosen == "gels" else rank.reshape(leading),
        values.reshape(*leading, values.shape[1]) if chosen in {"gelsd", "gelss"} else self.new_zeros(0),
    )


def _solved(a: Tensor, y: Tensor, rcond: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the solutions, the singular values and how many of them count."""
    u, values, vh = linalg_svd(a)
    counted = values > values[:, :1] * rcond
    parts = gemm(u.mT, y) * torch.where(counted, torch.reciprocal(values), 0.0)[:, :, None]
    return gemm(vh.mT, parts), values, counted.to(torch.int64).sum(1)
