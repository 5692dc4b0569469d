"""Gradients that a mask collects or hands out, by formulas that do not depend on a dispatch mode.

The value that `masked_fill` writes gets the sum of the slopes where it was written. The largest, smallest or
median element shares the slope with the elements that are equal to it. torch picks these elements in two
ways (`masked_fill_backward` and `evenly_distribute_backward` in torch/csrc/autograd/FunctionsManual.cpp,
2.13.0). Under a dispatch mode, which may be a user's own, it multiplies by the mask or writes zeros where it
does not hold; otherwise it takes the elements out. A sum then adds in another order, and a zero may have
another sign. Portable mode has the first way always.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.autograd_kernels import below_autograd, kernel_of, one_level_function, without_tangents
from samebits._torch.kernel_overrides import op_named

if TYPE_CHECKING:
    from torch import Tensor

    from samebits._torch.kernel_overrides import Kernel

_SHARING = ("max", "min", "median", "nanmedian")


def mask_kernels() -> dict[str, Kernel]:
    """Return the kernels, by name of their op."""
    functions = {
        "masked_fill.Tensor": _fill_function(),
        "masked_fill_.Tensor": _writing_fill_function(),
        **{name: _sharing_function(op_named(name)) for name in _SHARING},
    }
    return {name: without_tangents(kernel_of(function)) for name, function in functions.items()}


def _fill_function() -> Any:
    class MaskedFill(one_level_function()):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
            ctx.save_for_backward(mask)
            with below_autograd():
                result: Tensor = torch.ops.aten.masked_fill.Tensor(x, mask, value)
            return result

        backward = staticmethod(_fill_gradients)

    return MaskedFill


def _writing_fill_function() -> Any:
    class WritingMaskedFill(one_level_function()):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, target: Tensor, mask: Tensor, value: Tensor) -> Tensor:
            ctx.save_for_backward(mask)
            ctx.mark_dirty(target)
            with below_autograd():
                torch.ops.aten.masked_fill_.Tensor(target, mask, value)
            return target

        backward = staticmethod(_fill_gradients)

    return WritingMaskedFill


def _fill_gradients(ctx: Any, slope: Tensor) -> tuple[Tensor | None, None, Tensor | None]:
    (mask,) = ctx.saved_tensors
    of_x, _, of_value = ctx.needs_input_grad
    return (
        slope.masked_fill(mask, 0) if of_x else None,
        None,
        torch.where(mask, slope, 0).sum() if of_value else None,
    )


def _sharing_function(op: Any) -> Any:
    class Sharing(one_level_function()):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            with below_autograd():
                result: Tensor = op(x)
            ctx.save_for_backward(x, result)
            return result

        @staticmethod
        def backward(ctx: Any, slope: Tensor) -> Tensor:
            x, result = ctx.saved_tensors
            equal = (x == result).logical_or(x.isnan().logical_and(result.isnan()))
            shared: Tensor = equal * (slope / equal.sum())
            return shared

    return Sharing
