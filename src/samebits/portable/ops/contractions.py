"""Matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.portable.kernels.gemm import gemm

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.registry import Table


def mm(self: Tensor, mat2: Tensor) -> Tensor:
    """`aten::mm`."""
    return gemm(self, mat2)


def bmm(self: Tensor, mat2: Tensor) -> Tensor:
    """`aten::bmm`."""
    return gemm(self, mat2)


def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`aten::addmm`: the product is scaled first, then the scaled `self` is added."""
    product = gemm(mat1, mat2)
    if alpha != 1:
        product.mul_(alpha)
    if beta == 0:
        return product
    return product.add_(self if beta == 1 else self * beta)


def table() -> Table:
    """The ops of this module."""
    return {"mm": mm, "bmm": bmm, "addmm": addmm}
