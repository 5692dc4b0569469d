"""QR, eigenvalues and singular values, least squares, and the matrix exponential."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from samebits.portable._refusals import refuse_use
from samebits.portable._registry import handles
from samebits.portable._tensors import REAL, as_array, as_tensor
from samebits.portable.kernels.contractions import gemm
from samebits.portable.kernels.elementwise import sqrt
from samebits.portable.kernels.jacobi import SMALLEST, Problem, rotate
from samebits.portable.kernels.linalg import Reflections, factored, product
from samebits.portable.kernels.random import order
from samebits.portable.kernels.reductions import sum_magnitudes_over, sum_products_over, sum_squares_over

if TYPE_CHECKING:
    from torch import Tensor

    Solved = tuple[Tensor, Tensor, Tensor, Tensor]


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


@handles("aten::geqrf")
def geqrf(self: Tensor) -> tuple[Tensor, Tensor]:
    """Compute `aten::geqrf`: the upper triangle with the reflections below it, and their factors."""
    rows, columns = self.shape[-2:]
    batch = self.shape[:-2]
    a, reflections = factored(self.reshape(batch.numel(), rows, columns))
    v, tau = reflections
    for j in range(v.shape[1]):
        a[:, j + 1 :, j] = v[:, j, j + 1 :]
    return a.reshape(self.shape), tau.reshape(*batch, v.shape[1])


@handles("aten::linalg_householder_product")
def linalg_householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """Compute `aten::linalg_householder_product` of the reflections that `geqrf` returns."""
    a = input.reshape(input.shape[:-2].numel(), *input.shape[-2:])
    factors = tau.reshape(a.shape[0], tau.shape[-1]).contiguous()
    v = a[..., : factors.shape[1]].mT.clone(memory_format=torch.contiguous_format)
    v.diagonal(0, 1, 2).fill_(1)
    return product(Reflections(v, factors), a).reshape(input.shape)


_SYMMETRIC_TOLERANCE = {torch.float32: 2.0**-38, torch.float64: 2.0**-50}
_TOLERANCE = {torch.float32: 2.0**-37, torch.float64: 2.0**-49}


class Decomposition(NamedTuple):
    """The parts of (batch, m, n) matrices with m >= n.

    Args:
        left: (batch, m, n) or (batch, m, m), None if not asked for.
        values: (batch, n).
        right: (batch, n, n), a vector in each row; None if not asked for.
    """

    left: Tensor | None
    values: Tensor
    right: Tensor | None


@handles("aten::_linalg_eigh")
def linalg_eigh(A: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:
    """Compute `aten::_linalg_eigh`."""
    if UPLO.upper() not in {"L", "U"}:
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    lower = (A if UPLO.upper() == "L" else A.mT).tril()
    a, exponents = _scaled(_stacked(lower + lower.tril(-1).mT, "_linalg_eigh"), "linalg.eigh", A.dim())
    n = a.shape[-1]
    rows = torch.cat([a, _unit(a)], 2)
    limits = sqrt(sum_squares_over(a, (1, 2))) * _SYMMETRIC_TOLERANCE[A.dtype]
    _check_done(rotate(Problem(rows, n, limits, 0.0)), "linalg.eigh", A.dim())
    values = _times_power(sum_products_over(rows[..., :n], rows[..., n:], -1), exponents)
    ascending = order(values)
    sorted_values = (values.gather(1, ascending) + 0.0).reshape(A.shape[:-1]).to(A.dtype)
    if not compute_v:
        return sorted_values, sorted_values.new_zeros(0)
    vectors = _in_order(rows[..., n:], ascending)
    vectors = vectors * _signs(vectors) + 0.0
    return sorted_values, vectors.mT.reshape(A.shape).to(A.dtype)


@handles("aten::_linalg_svd")
def linalg_svd(
    A: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `aten::_linalg_svd`."""
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs "
            "with cuSOLVER backend."
        )
    tall = A.shape[-2] >= A.shape[-1]
    a, exponents = _scaled(_stacked(A if tall else A.mT, "_linalg_svd"), "linalg.svd", A.dim())
    (left, values, right), failed = _decomposed(a, _TOLERANCE[A.dtype], full_matrices, compute_uv)
    _check_done(failed, "linalg.svd", A.dim())
    batch = A.shape[:-2]
    s = _times_power(values, exponents).reshape(*batch, a.shape[-1]).to(A.dtype)
    if left is None or right is None:
        return s.new_zeros(0), s, s.new_zeros(0)
    u, vh = (left, right) if tall else (right.mT, left.mT)
    return _shaped(u, A), s, _shaped(vh, A)


def _shaped(vectors: Tensor, like: Tensor) -> Tensor:
    return vectors.reshape(*like.shape[:-2], *vectors.shape[1:]).to(like.dtype).contiguous()


def _decomposed(a: Tensor, tolerance: float, full: bool, vectors: bool) -> tuple[Decomposition, Tensor]:
    """Decompose matrices: rotating the rows of QR's triangle makes them the right vectors times the values.

    Return the numbers of the matrices that were not done too.
    """
    m, n = a.shape[1:]
    upper, reflections = factored(a)
    triangle = upper[:, :n]
    rows = (torch.cat([triangle, _unit(triangle)], 2) if vectors else triangle).contiguous()
    failed = rotate(Problem(rows, n, None, tolerance))
    squares = sum_squares_over(rows[..., :n], -1)
    values = sqrt(squares)
    descending = order(-values)
    values = values.gather(1, descending)
    if not vectors:
        return Decomposition(None, values, None), failed
    left = product(reflections, a.new_empty(a.shape[0], m, m if full else n))
    left[..., :n] = gemm(left[..., :n], _in_order(rows[..., n:], descending).mT)
    signs = _signs(left.mT)
    nonzero = squares.gather(1, descending) > SMALLEST
    right = _right(_in_order(rows[..., :n], descending), values, nonzero)
    return Decomposition(left * signs.mT + 0.0, values, right * signs[:, :n] + 0.0), failed


def _right(rows: Tensor, values: Tensor, nonzero: Tensor) -> Tensor:
    """Return the rows divided by their norms; where these are zero, QR completes the others to a basis."""
    zero = ~nonzero[:, :, None]
    right = torch.where(zero, torch.zeros_like(rows), rows / torch.where(nonzero, values, 1.0)[:, :, None])
    open_ones = zero.any(1).any(1)
    if bool(open_ones.any()):
        basis = product(factored(right[open_ones].mT)[1], right[open_ones])
        right[open_ones] = torch.where(zero[open_ones], basis.mT, right[open_ones])
    return right


@handles("aten::linalg_pinv.atol_rtol_tensor")
def linalg_pinv(
    self: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False
) -> Tensor:
    """Compute `aten::linalg_pinv.atol_rtol_tensor`."""
    rows, columns = self.shape[-2:]
    batch = self.shape[:-2]
    if not self.numel():
        return self.new_zeros(*batch, columns, rows)
    if hermitian:
        values, vectors = linalg_eigh(self)
        left, right = vectors, vectors
    else:
        left, values, vh = linalg_svd(self)
        right = vh.mT
    size = values.abs()
    greatest = as_tensor(as_array(size.cpu()).max(-1, keepdims=True)).to(size.device)
    bound = _bound(self, atol, rtol, greatest)
    inverse = torch.where(size > bound, torch.reciprocal(values), torch.zeros_like(values))
    scaled = (right * inverse[..., None, :]).reshape(batch.numel(), columns, -1)
    return gemm(scaled, left.mT.reshape(batch.numel(), -1, rows)).reshape(*batch, columns, rows)


def _bound(self: Tensor, atol: Tensor | None, rtol: Tensor | None, greatest: Tensor) -> Tensor:
    """Return the greater of atol and rtol times the greatest value."""
    usual = torch.finfo(self.dtype).eps * max(self.shape[-2:])
    absolute = self.new_zeros(()) if atol is None else atol.to(self.dtype)
    relative = torch.where(absolute > 0, 0.0, usual).to(self.dtype) if rtol is None else rtol.to(self.dtype)
    other = relative[..., None] * greatest
    return torch.where(absolute[..., None] > other, absolute[..., None], other)


def _stacked(a: Tensor, op: str) -> Tensor:
    if a.dtype not in REAL:
        raise refuse_use(op, f"of {a.dtype} tensors")
    return a.to(torch.float64).reshape(a.shape[:-2].numel(), *a.shape[-2:])


def _scaled(a: Tensor, name: str, rank: int) -> tuple[Tensor, Tensor]:
    """Return each matrix with its largest magnitude scaled to [1/2, 1) by a power of two; the exponents."""
    finite = torch.isfinite(a).flatten(1).all(1)
    if not bool(finite.all()):
        why = "because the input matrix contained non-finite values."
        raise _not_converged(name, int((~finite).nonzero()[0]), rank, why)
    given = as_array(a.cpu())
    _, exponents = np.frexp(np.abs(given).max((1, 2), initial=0.0))
    scaled = as_tensor(np.ldexp(given, -exponents[:, None, None])).to(a.device)
    return scaled, as_tensor(exponents).to(a.device)


def _times_power(values: Tensor, exponents: Tensor) -> Tensor:
    found = np.ldexp(as_array(values.cpu()), as_array(exponents.cpu())[:, None])
    return as_tensor(found).to(values.device)


def _check_done(failed: Tensor, name: str, rank: int) -> None:
    if failed.numel():
        why = "because the input matrix is ill-conditioned or has too many repeated values."
        raise _not_converged(name, int(failed[0]), rank, why)


def _not_converged(name: str, index: int, rank: int, why: str) -> Exception:
    which = "" if rank == 2 else f"(Batch element {index}): "
    error: Exception = torch.linalg.LinAlgError(  # type: ignore[attr-defined]
        f"{name}: {which}The algorithm failed to converge {why}"
    )
    return error


def _unit(like: Tensor) -> Tensor:
    n = like.shape[1]
    return torch.eye(n, dtype=like.dtype, device=like.device).expand(like.shape[0], n, n)


def _in_order(rows: Tensor, order: Tensor) -> Tensor:
    return rows.gather(1, order[:, :, None].expand(rows.shape))


def _signs(rows: Tensor) -> Tensor:
    """Return -1 for each row whose first component of the largest magnitude is negative, else 1."""
    if not rows.numel():
        return rows.new_ones(*rows.shape[:2], 1)
    largest = as_tensor(np.abs(as_array(rows.cpu())).argmax(-1)).to(rows.device)[..., None]
    return torch.where(rows.gather(2, largest) < 0, -1.0, 1.0).to(rows.dtype)


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


_DEGREE = 18  # 1 / 19! is below the accuracy of float64


@handles("aten::linalg_matrix_exp")
def linalg_matrix_exp(self: Tensor) -> Tensor:
    """Compute `aten::linalg_matrix_exp`: a Taylor polynomial, squared as often as the matrix was halved."""
    if self.dtype not in REAL:
        raise refuse_use("linalg_matrix_exp", f"of {self.dtype} tensors")
    n = self.shape[-1]
    a = self.to(torch.float64).reshape(self.shape[:-2].numel(), n, n)
    norms = as_array(sum_magnitudes_over(a, 1).cpu()).max(1, initial=0.0)
    halvings = np.maximum(np.frexp(np.where(np.isfinite(norms), norms, 0.0))[1], 0)
    out = _polynomial(as_tensor(np.ldexp(as_array(a.cpu()), -halvings[:, None, None])).to(a.device))
    for turn in range(int(halvings.max(initial=0))):
        here = as_tensor(halvings > turn).to(a.device)
        out[here] = gemm(out[here], out[here])
    out[as_tensor(~np.isfinite(norms)).to(a.device)] = torch.nan
    return out.reshape(self.shape).to(self.dtype)


def _polynomial(a: Tensor) -> Tensor:
    """Return 1 + a (1 + a/2 (1 + a/3 (…)))."""
    unit = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    out = unit.expand(a.shape).clone()
    for k in range(_DEGREE, 0, -1):
        out = unit + gemm(a, out) / k
    return out
