"""Triangular systems, Cholesky and LU factors, and ops made of them; every sum is a contraction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from samebits.portable._refusals import refuse_use
from samebits.portable._registry import handles
from samebits.portable._tensors import REAL, as_array, as_tensor
from samebits.portable.kernels.elementwise import unary
from samebits.portable.kernels.linalg import cholesky as cholesky_factors
from samebits.portable.kernels.linalg import lu_, solve_triangular

if TYPE_CHECKING:
    from torch import Tensor


def _matrices(x: Tensor, op: str) -> Tensor:
    """Return a contiguous copy as (batch, rows, columns)."""
    if x.dtype not in REAL:
        raise refuse_use(op, f"of {x.dtype} tensors")
    rows, columns = x.shape[-2:]
    return x.clone(memory_format=torch.contiguous_format).reshape(x.shape[:-2].numel(), rows, columns)


@handles("aten::linalg_cholesky_ex")
def linalg_cholesky_ex(
    self: Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    """Compute `aten::linalg_cholesky_ex`, column after column."""
    a = _matrices(self.transpose(-2, -1) if upper else self, "linalg_cholesky_ex")
    out, info = cholesky_factors(a)
    if check_errors:
        linalg_check_errors(info, "linalg.cholesky", is_matrix=self.dim() == 2)
    factor = out.reshape(self.shape)
    return factor.transpose(-2, -1).contiguous() if upper else factor, info.reshape(self.shape[:-2])


@handles("aten::cholesky")
def cholesky(self: Tensor, upper: bool = False) -> Tensor:
    """Compute `aten::cholesky`, the older name."""
    factor, info = linalg_cholesky_ex(self, upper=upper)
    linalg_check_errors(info, "cholesky", is_matrix=self.dim() == 2)
    return factor


@handles("aten::_linalg_check_errors")
def linalg_check_errors(info: Tensor, api_name: str, *, is_matrix: bool) -> None:
    """Compute `aten::_linalg_check_errors`."""
    failed = info.reshape(-1).nonzero().reshape(-1)
    if failed.numel():
        which = "" if is_matrix else f"(Batch element {int(failed[0])}): "
        code = int(info.reshape(-1)[failed[0]])
        raise torch.linalg.LinAlgError(  # type: ignore[attr-defined]
            f"{api_name}: {which}the matrix is singular or not positive-definite at element {code}"
        )


@handles("aten::linalg_solve_triangular")
def linalg_solve_triangular(
    self: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Compute `aten::linalg_solve_triangular`."""
    if not left:
        turned = linalg_solve_triangular(
            self.transpose(-2, -1), B.transpose(-2, -1), upper=not upper, unitriangular=unitriangular
        )
        return turned.transpose(-2, -1).contiguous()
    leading = np.broadcast_shapes(tuple(self.shape[:-2]), tuple(B.shape[:-2]))
    a = _matrices(self.expand(*leading, *self.shape[-2:]), "linalg_solve_triangular")
    b = _matrices(B.expand(*leading, *B.shape[-2:]), "linalg_solve_triangular")
    return solve_triangular(a, b, upper=upper, unit=unitriangular).reshape(*leading, *B.shape[-2:])


@handles("aten::triangular_solve")
def triangular_solve(
    self: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    """Compute `aten::triangular_solve`."""
    a = A.transpose(-2, -1) if transpose else A
    solution = linalg_solve_triangular(a, self, upper=upper != transpose, unitriangular=unitriangular)
    return solution, A.expand(*solution.shape[:-2], *A.shape[-2:]).clone()


@handles("aten::linalg_lu_factor_ex")
def linalg_lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `aten::linalg_lu_factor_ex`, columns and rows in turn; the first of the largest is pivot."""
    a = _matrices(A, "linalg_lu_factor_ex")
    pivots, info = lu_(a, pivot=pivot)
    if check_errors:
        linalg_check_errors(info, "linalg.lu_factor", is_matrix=A.dim() == 2)
    leading = A.shape[:-2]
    return a.reshape(A.shape), pivots.reshape(*leading, pivots.shape[1]), info.reshape(leading)


def _order(pivots: Tensor, rows: int) -> Tensor:
    """Return the row of the matrix at each position after the swaps: (batch, rows)."""
    order = np.tile(np.arange(rows), (pivots.shape[0], 1))
    for matrix, swaps in zip(order, as_array(pivots.cpu()), strict=True):
        for k, one in enumerate(swaps):
            matrix[[k, one - 1]] = matrix[[one - 1, k]]
    return as_tensor(order).to(pivots.device)


@handles("aten::linalg_lu_solve")
def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """Compute `aten::linalg_lu_solve`."""
    if not left:
        turned = linalg_lu_solve(LU, pivots, B.transpose(-2, -1), adjoint=not adjoint)
        return turned.transpose(-2, -1).contiguous()
    leading = np.broadcast_shapes(tuple(LU.shape[:-2]), tuple(B.shape[:-2]))
    a = _matrices(LU.expand(*leading, *LU.shape[-2:]), "linalg_lu_solve")
    b = _matrices(B.expand(*leading, *B.shape[-2:]), "linalg_lu_solve")
    order = _order(
        pivots.expand(*leading, pivots.shape[-1]).reshape(a.shape[0], pivots.shape[-1]), a.shape[-1]
    )[:, :, None].expand(b.shape)
    if not adjoint:
        lower = solve_triangular(a, b.gather(1, order), upper=False, unit=True)
        return solve_triangular(a, lower, upper=True, unit=False).reshape(*leading, *B.shape[-2:])
    turned = a.transpose(1, 2)
    solution = solve_triangular(
        turned, solve_triangular(turned, b, upper=False, unit=False), upper=True, unit=True
    )
    return torch.zeros_like(solution).scatter(1, order, solution).reshape(*leading, *B.shape[-2:])


@handles("aten::_linalg_solve_ex")
def linalg_solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Compute `aten::_linalg_solve_ex`."""
    factors, pivots, info = linalg_lu_factor_ex(A, check_errors=check_errors)
    is_vector = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])
    solution = linalg_lu_solve(factors, pivots, B.unsqueeze(-1) if is_vector else B, left=left)
    return solution.squeeze(-1) if is_vector else solution, factors, pivots, info


@handles("aten::linalg_inv_ex")
def linalg_inv_ex(A: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """Compute `aten::linalg_inv_ex`: the solution for the unit matrix."""
    factors, pivots, info = linalg_lu_factor_ex(A, check_errors=check_errors)
    unit = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand(A.shape)
    return linalg_lu_solve(factors, pivots, unit), info


def _sign(pivots: Tensor, dtype: torch.dtype) -> Tensor:
    unmoved = torch.arange(1, pivots.shape[-1] + 1, device=pivots.device)
    swaps = (pivots != unmoved).to(torch.int64).sum(-1)
    return torch.where(swaps % 2 == 0, torch.ones((), dtype=dtype, device=pivots.device), -1.0)


def _factors_of_determinant(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # Of the transpose where A is contiguous: the formula of the gradient expects it.
    return linalg_lu_factor_ex(A.mT if A.is_contiguous() else A)


@handles("aten::_linalg_det")
def linalg_det(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `aten::_linalg_det`: the sign of the swaps times each value of the diagonal, ascending."""
    factors, pivots, _ = _factors_of_determinant(A)
    out = _sign(pivots, A.dtype)
    for value in factors.diagonal(0, -2, -1).unbind(-1):
        out = out * value
    return out, factors, pivots


@handles("aten::_linalg_slogdet")
def linalg_slogdet(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Compute `aten::_linalg_slogdet`: the logarithms of the diagonal are added from +0, ascending."""
    factors, pivots, _ = _factors_of_determinant(A)
    sign = _sign(pivots, A.dtype)
    out = torch.zeros_like(sign)
    for value in factors.diagonal(0, -2, -1).unbind(-1):
        sign = sign * torch.sign(value)
        out = out + unary("log", value.abs())
    return sign, out, factors, pivots


@handles("aten::lu_unpack")
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `aten::lu_unpack`, which only moves data."""
    rows, columns = LU_data.shape[-2:]
    least, empty = min(rows, columns), LU_data.new_empty(0)
    lower, upper, swaps = empty, empty, empty
    if unpack_data:
        unit = torch.eye(rows, least, dtype=LU_data.dtype, device=LU_data.device)
        lower = LU_data[..., :, :least].tril(-1) + unit
        upper = LU_data[..., :least, :].triu()
    if unpack_pivots:
        order = _order(LU_pivots.reshape(-1, LU_pivots.shape[-1]), rows)
        unit = torch.eye(rows, dtype=LU_data.dtype, device=LU_data.device)
        swaps = unit[order].transpose(1, 2)
        swaps = swaps.reshape(*LU_pivots.shape[:-1], rows, rows).contiguous()
    return swaps, lower, upper


@handles("aten::linalg_lu")
def linalg_lu(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `aten::linalg_lu`: the factors, each as a matrix."""
    factors, pivots, _ = linalg_lu_factor_ex(A, pivot=pivot)
    return lu_unpack(factors, pivots, unpack_pivots=pivot)


@handles("aten::cholesky_solve")
def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """Compute `aten::cholesky_solve`."""
    lower = input2.transpose(-2, -1) if upper else input2
    first = linalg_solve_triangular(lower, self, upper=False)
    return linalg_solve_triangular(lower.transpose(-2, -1), first, upper=True)


@handles("aten::cholesky_inverse")
def cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor:
    """Compute `aten::cholesky_inverse`."""
    unit = torch.eye(self.shape[-1], dtype=self.dtype, device=self.device).expand(self.shape)
    return cholesky_solve(unit, self, upper)


@handles("aten::linalg_cross")
def linalg_cross(self: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Compute `aten::linalg_cross`: a1 b2 - a2 b1 and so on, each product rounded."""
    a: Tensor
    b: Tensor
    a, b = torch.broadcast_tensors(self, other)  # type: ignore[no-untyped-call]
    return a.roll(-1, dim) * b.roll(-2, dim) - a.roll(-2, dim) * b.roll(-1, dim)
