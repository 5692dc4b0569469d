"""Gradients of group norm that can be differentiated again, where releases of torch have other formulas.

`backward(create_graph=True)` needs a gradient that consists of ops which autograd knows. For group norm torch
has a formula for that beside the one for a gradient alone
(`infinitely_differentiable_native_group_norm_backward` in torch/csrc/autograd/FunctionsManual.cpp), and
2.15.0 computes it in another order than 2.13.0. Portable mode keeps that of 2.13.

2.13 leaves out what comes through the mean or the reciprocal standard deviation of `native_group_norm` if
only one of the two is used. 2.15 does not, and portable mode does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.autograd_kernels import below_autograd, kernel_of, one_level_function, without_tangents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from samebits._torch.kernel_overrides import Kernel


def graph_kernels() -> dict[str, Kernel]:
    """Return the kernels, by name of their op."""
    return {"native_group_norm": without_tangents(kernel_of(_group_norm_function()))}


def _group_norm_function() -> Any:
    class GroupNorm(one_level_function()):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any) -> Any:
            with below_autograd():
                result, mean, rstd = torch.ops.aten.native_group_norm(x, weight, bias, *rest)
            ctx.save_for_backward(x, weight, mean, rstd)
            ctx.sizes = rest[:4]
            ctx.set_materialize_grads(False)
            return result, mean, rstd

        @staticmethod
        def backward(ctx: Any, *slopes: Tensor | None) -> tuple[Tensor | None, ...]:
            wanted = list(ctx.needs_input_grad[:3])
            x, weight, mean, rstd = ctx.saved_tensors
            found: Sequence[Tensor | None] = (None, None, None)
            if torch.is_grad_enabled() or slopes[1] is not None or slopes[2] is not None:
                found = _Groups(x, weight, mean, rstd, ctx.sizes).gradients(slopes, wanted)
            elif slopes[0] is not None:
                backward = torch.ops.aten.native_group_norm_backward
                found = backward(slopes[0], x, mean, rstd, weight, *ctx.sizes, wanted)
            return *found, *[None] * (len(ctx.needs_input_grad) - 3)

    return GroupNorm


class _Groups:
    """The input of a group norm and its statistics, as groups.

    Args:
        x: the input.
        weight: of the channels; None for ones.
        mean: of each group.
        rstd: the reciprocal standard deviation of each.
        sizes: batch, channels, positions, groups.
    """

    def __init__(
        self, x: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor, sizes: tuple[int, int, int, int]
    ) -> None:
        batch, channels, positions, groups = sizes
        self._shape = batch, groups, channels // groups, positions
        self._of_each = batch, groups, 1, 1
        self._count = positions * channels // groups
        self._like, self._channels = x.shape, channels
        self._x = x.reshape(self._shape)
        self._mean, self._rstd = mean.view(self._of_each), rstd.view(self._of_each)
        self._weight = None if weight is None else weight.view(1, groups, channels // groups, 1)

    def gradients(self, slopes: Sequence[Tensor | None], wanted: Sequence[bool]) -> list[Tensor | None]:
        """Return those of the input, the weight and the bias, as far as they are wanted.

        Args:
            slopes: of the result, of the means and of the reciprocal standard deviations.
            wanted: which.
        """
        slope = None if slopes[0] is None else slopes[0].reshape(self._shape)
        if slope is None:
            through = self._through_statistics(*slopes[1:]) if wanted[0] else None
            return [None if through is None else through.view(self._like), None, None]
        products = (slope * self._x).sum(3, keepdim=True)
        sums = slope.sum(3, keepdim=True)
        of_input = None
        if wanted[0]:
            of_input = self._through_result(slope, products, sums)
            through = self._through_statistics(*slopes[1:])
            of_input = (of_input if through is None else of_input + through).view(self._like)
        of_weight = ((products - sums * self._mean) * self._rstd).sum(0) if wanted[1] else None
        of_bias = sums.sum(0) if wanted[2] else None
        return [
            of_input,
            *(each if each is None else each.view(self._channels) for each in (of_weight, of_bias)),
        ]

    def _through_result(self, slope: Tensor, products: Tensor, sums: Tensor) -> Tensor:
        cubed = self._rstd * self._rstd * self._rstd
        scale, share = self._rstd, 1.0 / self._count
        if self._weight is not None:
            scale, products, sums = scale * self._weight, products * self._weight, sums * self._weight
        products, sums = products.sum(2, keepdim=True), sums.sum(2, keepdim=True)
        by_x = (sums * self._mean - products) * cubed * share
        rest = sums * self._rstd * share
        return scale * slope + by_x * self._x + (-by_x * self._mean - rest)

    def _through_statistics(self, of_mean: Tensor | None, of_rstd: Tensor | None) -> Tensor | None:
        found = None
        if of_rstd is not None:
            cubed = self._rstd * self._rstd * self._rstd
            of_variance = cubed * -0.5 * of_rstd.view(self._of_each)
            found = of_variance * (2.0 / self._count) * (self._x - self._x.mean([2, 3], keepdim=True))
        if of_mean is not None:
            shared = of_mean.view(self._of_each).expand(self._shape) / self._count
            found = shared if found is None else found + shared
        return found
