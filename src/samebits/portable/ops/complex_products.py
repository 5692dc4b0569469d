"""Products and sums of complex matrices and tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits.portable._registry import handles_complex
from samebits.portable.kernels.complex_numbers import by_parts, magnitude, matrix_product, of_pairs
from samebits.portable.kernels.reductions import axes, count_over, running, sum_over
from samebits.portable.ops import accumulation, reductions
from samebits.portable.ops.complex_arithmetic import add as plus
from samebits.portable.ops.complex_arithmetic import mul as times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from samebits.portable.ops.accumulation import Indices

    Dims = Sequence[int] | int | None

SECTION = "Complex numbers"
Factor = Any  # a number


@handles_complex("aten::mm")
def mm(self: Tensor, mat2: Tensor) -> Tensor:
    """Compute `aten::mm`."""
    return matrix_product(self, mat2)


@handles_complex("aten::bmm")
def bmm(self: Tensor, mat2: Tensor) -> Tensor:
    """Compute `aten::bmm`."""
    return matrix_product(self, mat2)


@handles_complex("aten::addmm")
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Factor = 1, alpha: Factor = 1) -> Tensor:
    """Compute `aten::addmm`: the product is scaled first, then the scaled `self` is added."""
    return _added(matrix_product(mat1, mat2), self, beta, alpha)


@handles_complex("aten::baddbmm")
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Factor = 1, alpha: Factor = 1) -> Tensor:
    """Compute `aten::baddbmm`."""
    return _added(matrix_product(batch1, batch2), self, beta, alpha)


@handles_complex("aten::mv")
def mv(self: Tensor, vec: Tensor) -> Tensor:
    """Compute `aten::mv`."""
    return matrix_product(self, vec.unsqueeze(1)).squeeze(1)


@handles_complex("aten::addmv")
def addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: Factor = 1, alpha: Factor = 1) -> Tensor:
    """Compute `aten::addmv`."""
    return _added(mv(mat, vec), self, beta, alpha)


@handles_complex("aten::dot")
def dot(self: Tensor, tensor: Tensor) -> Tensor:
    """Compute `aten::dot`."""
    return matrix_product(self.unsqueeze(0), tensor.unsqueeze(1)).view(())


@handles_complex("aten::vdot")
def vdot(self: Tensor, other: Tensor) -> Tensor:
    """Compute `aten::vdot`: `dot` with the conjugate of the first vector."""
    return dot(torch.conj_physical(self), other)


def _added(product: Tensor, self: Tensor, beta: Factor, alpha: Factor) -> Tensor:
    scaled = product if alpha == 1 else times(product, alpha)
    if beta == 0:
        return scaled
    return plus(scaled, self if beta == 1 else times(self, beta))


@handles_complex("aten::sum")
def sum_all(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """Compute `aten::sum`: the sums of the parts."""
    return sum_dims(self, None, dtype=dtype)


@handles_complex("aten::sum.dim_IntList")
def sum_dims(self: Tensor, dim: Dims, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """Compute `aten::sum.dim_IntList`."""
    self = self if dtype is None else self.to(dtype)
    if not self.is_complex():
        return reductions.sum_dims(self, dim, keepdim)
    if not self.dim():
        axes(0, dim)
        return self.clone()
    return of_pairs(sum_over(torch.view_as_real(self), axes(self.dim(), dim), keepdim))


@handles_complex("aten::mean")
def mean_all(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """Compute `aten::mean`: the sums of the parts, divided by the number of values."""
    return mean_dims(self, None, dtype=dtype)


@handles_complex("aten::mean.dim")
def mean_dims(self: Tensor, dim: Dims, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """Compute `aten::mean.dim`."""
    self = self if dtype is None else self.to(dtype)
    if not self.is_complex():
        return reductions.mean_dims(self, dim, keepdim)
    total = sum_dims(self, dim, keepdim)
    return of_pairs(torch.view_as_real(total) / count_over(self, dim))


@handles_complex("aten::cumsum")
def cumsum(self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Compute `aten::cumsum`: the running sums of the parts."""
    self = self if dtype is None else self.to(dtype)
    axes(self.dim(), dim)
    if not self.dim() or not self.numel():
        return self.clone()
    return of_pairs(running(torch.view_as_real(self), dim % self.dim()))


@handles_complex("aten::linalg_vector_norm")
def vector_norm(
    self: Tensor,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Compute `aten::linalg_vector_norm`: the norm of the magnitudes."""
    self = self if dtype is None else self.to(dtype)
    return reductions.vector_norm(magnitude(self), ord, dim, keepdim)


@handles_complex("aten::_foreach_norm.Scalar")
def foreach_norm(self: Sequence[Tensor], ord: float = 2, dtype: torch.dtype | None = None) -> list[Tensor]:
    """Compute `aten::_foreach_norm.Scalar`."""
    real = dtype.to_real() if dtype is not None else None
    return [
        vector_norm(tensor, ord, dtype=dtype)
        if tensor.is_complex()
        else reductions.vector_norm(tensor, ord, dtype=real)
        for tensor in self
    ]


@handles_complex("aten::_index_put_impl_")
def _index_put_impl_(
    self: Tensor, indices: Indices, values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    """Compute `aten::_index_put_impl_`."""
    del unsafe
    return self.copy_(by_parts(accumulation.index_put, self, indices, values, accumulate))


@handles_complex("aten::index_add")
def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Factor = 1) -> Tensor:
    """Compute `aten::index_add`: alpha · source is rounded, then the parts are added."""
    scaled = source if alpha == 1 else times(source, alpha)
    return by_parts(accumulation.index_add, self, dim, index, scaled)


@handles_complex("aten::addr")
def addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Factor = 1, alpha: Factor = 1) -> Tensor:
    """Compute `aten::addr`."""
    return _added(times(vec1.unsqueeze(1), vec2), self, beta, alpha)
