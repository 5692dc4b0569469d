"""QR by Householder reflections, one column after the other ("QR" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels.elementwise import sqrt
from samebits.portable.kernels.gemm import gemm

if TYPE_CHECKING:
    from torch import Tensor


Reflection = tuple["Tensor", "Tensor"]


@handles("aten::linalg_qr")
def linalg_qr(A: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Compute `aten::linalg_qr`."""
    if mode not in {"reduced", "complete", "r"}:
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced', 'complete', 'r'"
        )
    rows, columns = A.shape[-2:]
    batch, width = A.shape[:-2], rows if mode == "complete" else min(rows, columns)
    upper, reflections = factored(A.reshape(batch.numel(), rows, columns))
    r = upper[:, :width].reshape(*batch, width, columns)
    if mode == "r":
        return r.new_zeros(0), r
    return product(reflections, A.new_empty(batch.numel(), rows, width)).reshape(*batch, rows, width), r


def factored(a: Tensor) -> tuple[Tensor, list[Reflection]]:
    """Return the upper triangles of matrices (batch, rows, columns), and the reflections that make them."""
    work = a.clone(memory_format=torch.contiguous_format)
    reflections = []
    for j in range(min(work.shape[1:])):
        v, tau, beta = _reflection(work[:, j:, j])
        _reflect(work[:, j:, j + 1 :], v, tau)
        work[:, j, j] = beta
        work[:, j + 1 :, j] = 0
        reflections.append((v, tau))
    return work, reflections


def _reflection(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return v with v[0] = 1, tau and beta for each row x: (1 - tau v v^T) x is beta and zeros."""
    alpha, rest = x[:, 0].clone(), x[:, 1:].contiguous()
    squares = gemm(rest[:, None], rest[:, :, None])[:, 0, 0]
    turned = squares != 0
    root = sqrt(alpha * alpha + squares)
    beta = torch.where(turned, torch.where(alpha < 0, root, -root), alpha)
    v = torch.ones_like(x)
    v[:, 1:] = torch.where(turned[:, None], rest / (alpha - beta)[:, None], torch.zeros_like(rest))
    return v, torch.where(turned, (beta - alpha) / beta, torch.zeros_like(beta)), beta


def _reflect(work: Tensor, v: Tensor, tau: Tensor) -> None:
    """Subtract (tau v) times (v^T work) from `work`."""
    if work.numel():
        work.sub_((v * tau[:, None])[:, :, None] * gemm(v[:, None], work))


def product(reflections: list[Reflection], like: Tensor) -> Tensor:
    """Return the first columns of the product of all reflections, of the shape and dtype of `like`."""
    q = torch.eye(*like.shape[1:], dtype=like.dtype).expand(like.shape).contiguous()
    for j in range(len(reflections) - 1, -1, -1):
        v, tau = reflections[j]
        _reflect(q[:, j:, j:], v, tau)
    return q


@handles("aten::geqrf")
def geqrf(self: Tensor) -> tuple[Tensor, Tensor]:
    """Compute `aten::geqrf`: the upper triangle with the reflections below it, and their factors."""
    rows, columns = self.shape[-2:]
    batch = self.shape[:-2]
    a, reflections = factored(self.reshape(batch.numel(), rows, columns))
    tau = a.new_zeros(batch.numel(), len(reflections))
    for j, (v, factor) in enumerate(reflections):
        a[:, j + 1 :, j] = v[:, 1:]
        tau[:, j] = factor
    return a.reshape(self.shape), tau.reshape(*batch, len(reflections))


@handles("aten::linalg_householder_product")
def linalg_householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """Compute `aten::linalg_householder_product` of the reflections that `geqrf` returns."""
    a = input.reshape(input.shape[:-2].numel(), *input.shape[-2:])
    factors = tau.reshape(a.shape[0], tau.shape[-1])
    reflections = []
    for j in range(factors.shape[1]):
        v = a[:, j:, j].clone(memory_format=torch.contiguous_format)
        v[:, 0] = 1
        reflections.append((v, factors[:, j]))
    return product(reflections, a).reshape(input.shape)
