"""The gradient of a determinant, by formulas that no dispatch mode changes.

Of a gradient that is to be differentiated again torch makes a difference between singular matrices and
others, but not while a dispatch mode is on, which may be a user's own: then it takes the formula for singular
matrices, which holds for all (`linalg_det_backward` in torch/csrc/autograd/FunctionsManual.cpp, 2.13.0).
Portable mode always does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.autograd_kernels import below_autograd, kernel_of, one_level_function, without_tangents
from samebits._torch.portable import determinant
from samebits.portable.product_gradients import product_gradient

if TYPE_CHECKING:
    from torch import Tensor

    from samebits._torch.kernel_overrides import Kernel


def determinant_kernels() -> dict[str, Kernel]:
    """Return the kernel, by name of its op."""
    return {"_linalg_det": without_tangents(kernel_of(_det_function()))}


def _det_function() -> Any:
    class Det(one_level_function()):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            with below_autograd():
                found = determinant(x)
            ctx.save_for_backward(x, *found)
            ctx.mark_non_differentiable(*found[1:])
            ctx.set_materialize_grads(False)
            return found

        @staticmethod
        def backward(ctx: Any, slope: Tensor | None, *_: None) -> Tensor | None:
            x, det, lu, pivots = ctx.saved_tensors
            if slope is None:
                return None
            if not x.numel():
                return torch.zeros_like(x)
            if x.shape[-1] == 1:
                return slope[..., None, None].expand_as(x)
            if torch.is_grad_enabled():
                return _cofactors(slope, x)
            return _solved(slope * det, lu, pivots, transposed=x.is_contiguous())

    return Det


def _solved(scale: Tensor, lu: Tensor, pivots: Tensor, *, transposed: bool) -> Tensor:
    """Return the transposed inverse times a number, from the LU factors with zeros on the diagonal replaced.

    Args:
        scale: the number, of each matrix.
        lu: factors of the matrix, or of its transpose.
        pivots: of the factors.
        transposed: whether they are those of the transpose, as `_linalg_det` has them of a contiguous matrix.
    """
    right = torch.diag_embed(scale.unsqueeze(-1).expand_as(pivots)).mT
    is_zero = lu.diagonal(0, -2, -1) == 0.0
    factors = lu + torch.diag_embed(torch.where(is_zero, torch.finfo(lu.dtype).eps, 0.0))
    solved: Tensor = torch.linalg.lu_solve(factors, pivots, right, left=True, adjoint=not transposed)
    return solved


def _cofactors(slope: Tensor, x: Tensor) -> Tensor:
    """Return the gradient by way of singular values, which holds for singular matrices too."""
    left, values, right = torch.linalg.svd(x)
    sign = torch.linalg.det(left) * torch.linalg.det(right) * slope
    others = product_gradient(sign.unsqueeze(-1), values, values.dim() - 1)
    gradient: Tensor = (left * others.unsqueeze(-2)) @ right
    return gradient
