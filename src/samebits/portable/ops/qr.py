"""QR by Householder reflections, one column after the other ("QR" in docs/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable.kernels.gemm import gemm
from samebits.portable.kernels.root import sqrt

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.registry import Table

Reflection = tuple["Tensor", "Tensor"]


def linalg_qr(A: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """`aten::linalg_qr`."""
    if mode not in {"reduced", "complete", "r"}:
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced', 'complete', 'r'"
        )
    rows, columns = A.shape[-2:]
    batches = A.shape[:-2].numel()
    inner = min(rows, columns)
    width = rows if mode == "complete" else inner
    q_shape = (0,) if mode == "r" else (*A.shape[:-2], rows, width)
    q, r = torch.zeros(q_shape, dtype=A.dtype), torch.zeros((*A.shape[:-2], width, columns), dtype=A.dtype)
    for index, matrix in enumerate(A.reshape(batches, rows, columns)):
        upper, reflections = _factored(matrix.clone(memory_format=torch.contiguous_format))
        r.view(batches, width, columns)[index].copy_(upper[:width])
        if mode != "r":
            q.view(batches, rows, width)[index].copy_(_product(reflections, rows, width))
    return q, r


def _factored(work: Tensor) -> tuple[Tensor, list[Reflection]]:
    """The upper triangle, and the reflections; `work` is overwritten."""
    reflections = []
    for j in range(min(work.shape)):
        v, tau, beta = _reflection(work[j:, j])
        _reflect(work[j:, j + 1 :], v, tau)
        work[j, j] = beta
        work[j + 1 :, j] = 0
        reflections.append((v, tau))
    return work, reflections


def _reflection(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """V with v[0] = 1, tau and beta: (1 - tau v v^T) x is beta and zeros."""
    alpha, rest = x[0].clone(), x[1:].contiguous()
    squares = gemm(rest[None], rest[:, None])[0, 0]
    v = torch.ones_like(x)
    if not bool(squares != 0):
        return torch.cat([v[:1], torch.zeros_like(rest)]), torch.zeros_like(alpha), alpha
    root = sqrt(alpha * alpha + squares)
    beta = torch.where(alpha < 0, root, -root)
    v[1:] = rest / (alpha - beta)
    return v, (beta - alpha) / beta, beta


def _reflect(work: Tensor, v: Tensor, tau: Tensor) -> None:
    """`work` less (tau v) times (v^T work)."""
    if work.numel():
        work.sub_((v * tau)[:, None] * gemm(v[None], work))


def _product(reflections: list[Reflection], rows: int, width: int) -> Tensor:
    q = torch.eye(rows, width, dtype=reflections[0][0].dtype) if reflections else torch.eye(rows, width)
    for j in range(len(reflections) - 1, -1, -1):
        v, tau = reflections[j]
        _reflect(q[j:, j:], v, tau)
    return q


def table() -> Table:
    """The ops of this module."""
    return {"linalg_qr": linalg_qr}
