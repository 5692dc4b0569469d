"""Linear algebra by the C kernels: the part of the native backend that is about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable.backends.native_fourier import NativeFourier
from samebits.portable.backends.native_norms import address

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.kernels.jacobi import Problem
    from samebits.portable.kernels.linalg import Reflections


_float64 = torch.float64


class NativeLinalg(NativeFourier):
    """The part of the native backend that calls the kernels of linear algebra."""

    def rotate(self, problem: Problem, most_sweeps: int, done: Tensor) -> None:
        """See `Backend`."""
        rows = problem.rows
        batch, n, length = rows.shape
        self._kernels.jacobi(
            batch=batch,
            n=n,
            width=problem.width,
            length=length,
            rows=rows.data_ptr(),
            limits=address(problem.limits),
            tolerance=problem.tolerance,
            most_sweeps=most_sweeps,
            done=done.data_ptr(),
        )

    def reflect_columns(self, work: Tensor, reflections: Reflections) -> None:
        """See `Backend`."""
        batch, rows, columns = work.shape
        self._kernels.householder(
            is_f64=work.dtype is _float64,
            batch=batch,
            rows=rows,
            columns=columns,
            work=work.data_ptr(),
            v=reflections.v.data_ptr(),
            tau=reflections.tau.data_ptr(),
        )

    def multiply_reflections(self, reflections: Reflections, q: Tensor) -> None:
        """See `Backend`."""
        batch, rows, columns = q.shape
        self._kernels.reflections(
            is_f64=q.dtype is _float64,
            batch=batch,
            rows=rows,
            columns=columns,
            steps=reflections.tau.shape[1],
            v=reflections.v.data_ptr(),
            tau=reflections.tau.data_ptr(),
            q=q.data_ptr(),
        )

    def cholesky(self, a: Tensor, out: Tensor, info: Tensor) -> None:
        """See `Backend`."""
        self._kernels.cholesky(
            is_f64=a.dtype is _float64,
            batch=a.shape[0],
            n=a.shape[1],
            x=a.data_ptr(),
            out=out.data_ptr(),
            info=info.data_ptr(),
        )

    def lu(self, a: Tensor, pivots: Tensor, info: Tensor, *, pivot: bool) -> None:
        """See `Backend`."""
        batch, rows, columns = a.shape
        self._kernels.lu(
            is_f64=a.dtype is _float64,
            is_pivoted=pivot,
            batch=batch,
            rows=rows,
            columns=columns,
            a=a.data_ptr(),
            pivots=pivots.data_ptr(),
            info=info.data_ptr(),
        )

    def solve_triangular(self, a: Tensor, x: Tensor, *, upper: bool, unit: bool) -> None:
        """See `Backend`."""
        batch, n, columns = x.shape
        self._kernels.triangular(
            is_f64=x.dtype is _float64,
            is_upper=upper,
            is_unit=unit,
            batch=batch,
            n=n,
            columns=columns,
            a=a.data_ptr(),
            a_strides=(a.stride(1), a.stride(2), a.stride(0)),
            x=x.data_ptr(),
        )
