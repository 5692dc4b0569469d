"""Gradients of products, by formulas that divide by no element.

torch has several for `prod` and `cumprod` and chooses by what it finds: whether an element is zero, whether
the gradient is to be differentiated again, and whether a dispatch mode is on, which may be a user's own
(`prod_backward` in torch/csrc/autograd/FunctionsManual.cpp, `cumprod_backward` in
aten/src/ATen/native/ReduceOps.cpp, 2.13.0). Their bits differ. Portable mode always has the one that torch
2.13 has under a dispatch mode. For `cumprod` 2.15.0 computes that in another order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.autograd_kernels import (
    below_autograd,
    kernel_of,
    one_level,
    one_level_function,
    without_tangents,
)

if TYPE_CHECKING:
    from torch import Tensor

    from samebits._torch.kernel_overrides import Kernel


def product_kernels() -> dict[str, Kernel]:
    """Return the kernels, by name of their op."""
    return {
        "prod": kernel_of(_prod_function()),
        "prod.dim_int": _prod_along(_prod_along_function()),
        "cumprod": without_tangents(kernel_of(_cumprod_function())),
        "cumprod_": without_tangents(_writing_kernel(_writing_cumprod_function())),
    }


def product_gradient(slope: Tensor, x: Tensor, dim: int) -> Tensor:
    """Return the gradient of a product along a dimension: for each element, the product of all the others.

    Args:
        slope: of the product, which keeps the dimension.
        x: what is multiplied.
        dim: along which dimension, counted from the first.
    """
    size = x.shape[dim]
    if not x.numel():
        return slope.expand_as(x)
    if size == 1:
        return slope
    one = torch.ones_like(x.narrow(dim, 0, 1), memory_format=torch.contiguous_format)
    before = torch.cat([one, x.narrow(dim, 0, size - 1)], dim).cumprod(dim)
    after = torch.cat([one, x.narrow(dim, 1, size - 1).flip(dim)], dim).cumprod(dim).flip(dim)
    return slope * (before * after)


# ---- prod


def _prod_function() -> Any:
    class Prod(one_level_function()):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
            with below_autograd():
                result: Tensor = torch.ops.aten.prod(x, dtype=dtype)
            _save(ctx, x, result)
            return result

        @staticmethod
        def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
            (x,) = ctx.saved_tensors
            return _of_all(slope, x.to(slope.dtype)), None

        @staticmethod
        def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
            (x,) = ctx.saved_tensors
            one = torch.ones((), dtype=ctx.dtype, device=x.device)
            return (_of_all(one, x.to(ctx.dtype)) * tangent).sum().to(ctx.dtype)

    return Prod


def _of_all(slope: Tensor, x: Tensor) -> Tensor:
    if not x.dim():
        return slope.clone()
    return product_gradient(slope, x.contiguous().view(-1), 0).view_as(x)


def _prod_along(function: Any) -> Kernel:
    def run(_: Any, x: Tensor, dim: int, keep: bool = False, *, dtype: torch.dtype | None = None) -> Any:  # noqa: FBT001, FBT002 - the parameters of torch
        with one_level():
            return function.apply(x, dim, keep, dtype)

    return run


def _prod_along_function() -> Any:
    class ProdAlong(one_level_function()):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Tensor, *how: Any) -> Tensor:
            dim, ctx.keepdim, dtype = how
            ctx.dim = dim % max(x.dim(), 1)
            with below_autograd():
                result: Tensor = torch.ops.aten.prod.dim_int(x, dim, ctx.keepdim, dtype=dtype)
            _save(ctx, x, result)
            return result

        @staticmethod
        def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None, None]:
            (x,) = ctx.saved_tensors
            return _along(ctx, slope, x.to(slope.dtype)), None, None, None

        @staticmethod
        def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
            (x,) = ctx.saved_tensors
            one = torch.ones(ctx.shape, dtype=ctx.dtype, device=x.device)
            part = _along(ctx, one, x.to(ctx.dtype)) * tangent
            return part.sum(ctx.dim, ctx.keepdim).to(ctx.dtype)

    return ProdAlong


def _along(ctx: Any, slope: Tensor, x: Tensor) -> Tensor:
    if not x.dim():
        return slope.clone()
    return product_gradient(slope if ctx.keepdim else slope.unsqueeze(ctx.dim), x, ctx.dim)


def _save(ctx: Any, x: Tensor, result: Tensor) -> None:
    ctx.save_for_backward(x)
    ctx.save_for_forward(x)
    ctx.shape, ctx.dtype = result.shape, result.dtype


# ---- cumprod


def _cumprod_function() -> Any:
    class Cumprod(one_level_function()):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
            with below_autograd():
                result: Tensor = torch.ops.aten.cumprod(x, dim, dtype=dtype)
            ctx.save_for_backward(x, result)
            ctx.dim = dim
            return result

        @staticmethod
        def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None]:
            x, result = ctx.saved_tensors
            return _cumprod_gradient(slope, x, result, ctx.dim), None, None

    return Cumprod


def _writing_kernel(function: Any) -> Kernel:
    def run(_: Any, target: Tensor, *args: Any, **kwargs: Any) -> Any:
        before = target.clone()
        with one_level():
            return function.apply(target, before, *args, *kwargs.values())

    return run


def _writing_cumprod_function() -> Any:
    """Return the function in place: of what it writes to, a copy of that, and the rest."""

    class WritingCumprod(one_level_function()):  # type: ignore[misc]
        @staticmethod
        def forward(
            ctx: Any, target: Tensor, before: Tensor, dim: int, dtype: torch.dtype | None = None
        ) -> Tensor:
            ctx.mark_dirty(target)
            with below_autograd():
                torch.ops.aten.cumprod_(target, dim, dtype=dtype)
            ctx.save_for_backward(before, target)
            ctx.dim = dim
            return target

        @staticmethod
        def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None, None]:
            x, result = ctx.saved_tensors
            return _cumprod_gradient(slope, x, result, ctx.dim), None, None, None

    return WritingCumprod


def _cumprod_gradient(slope: Tensor, x: Tensor, result: Tensor, dim: int) -> Tensor:
    slope = slope.to(x.dtype)
    if x.numel() <= 1 or x.shape[dim] == 1:
        return slope
    if torch.is_grad_enabled():
        return _cumprod_graph(slope, x, dim)
    return _cumprod_alone(slope, x, result, dim)


def _cumprod_alone(slope: Tensor, x: Tensor, result: Tensor, dim: int) -> Tensor:
    """Return the gradient in time that grows with the size: not one to differentiate again.

    Before the first zero, one sum over the rest serves each element, divided by that element. At the first
    zero it is the product before it times a sum up to the second, and from there on it is zero.
    """
    is_zero = x == 0
    zeros = is_zero.cumsum(dim)
    before, between = zeros == 0, (zeros == 1) & ~is_zero
    summed = (result * slope).masked_fill(~before, 0.0).flip(dim).cumsum(dim).flip(dim)
    others = x.masked_fill(~between, 1.0).cumprod(dim) * slope.masked_fill(zeros != 1, 0.0)
    at_zero = others.sum(dim, keepdim=True) * _product_before(zeros == 1, result, dim)
    return torch.where(is_zero & (zeros == 1), at_zero, torch.where(before, summed / x, 0.0))


def _product_before(mask: Tensor, result: Tensor, dim: int) -> Tensor:
    """Return the products of what comes before the first element for which the mask holds."""
    first = mask.max(dim, keepdim=True).indices
    return result.gather(dim, (first - 1).relu()).masked_fill(first == 0, 1.0)


def _cumprod_graph(slope: Tensor, x: Tensor, dim: int) -> Tensor:
    """Return the gradient one element after the other, of ops that can be differentiated."""
    size = x.shape[dim]
    parts = [(slope.narrow(dim, at, size - at) * _without(x, at, dim)).sum(dim) for at in range(size)]
    return torch.stack(parts, dim)


def _without(x: Tensor, at: int, dim: int) -> Tensor:
    """Return the products up to each element from one on, of all elements but that one."""
    after = x.shape[dim] - at - 1
    if not after:
        return x.narrow(dim, 0, at).prod(dim, keepdim=True)
    later = x.narrow(dim, at + 1, after).cumprod(dim)
    if not at:
        return torch.cat([torch.ones_like(x.narrow(dim, 0, 1)), later], dim)
    before = x.narrow(dim, 0, at).prod(dim, keepdim=True)
    return torch.cat([before, before.expand_as(later) * later], dim)
