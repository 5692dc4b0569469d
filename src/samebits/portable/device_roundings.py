"""Ops that round once on the CPU, and otherwise on a GPU: there they are made to round as on the CPU.

`x / 3` on a GPU multiplies by 1 / 3, which has been rounded already (`div_true_kernel_cuda` and its like in
ATen/native/cuda/BinaryDivTrueKernel.cu, 2.13.0). Where the divisor lies on the GPU, it divides.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.kernel_overrides import KernelOverrides, can_override, op_named
from samebits.portable._tensors import LOW_PRECISION

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

_DIVISIONS = ("div.Tensor", "div_.Tensor", "div.Tensor_mode", "div_.Tensor_mode")
_FLOORED = ("floor_divide", "floor_divide_.Tensor")


@functools.cache
def own_roundings() -> KernelOverrides:
    """Return the kernels of these ops for tensors on a GPU; none where torch takes none from Python."""
    names = (*_DIVISIONS, *_FLOORED) if can_override() and torch.version.cuda is not None else ()
    return KernelOverrides({name: _kernel(name) for name in names}, "CUDA")


def _kernel(name: str) -> Callable[..., Any]:
    divide = op_named(name.replace("_.", ".").replace("floor_divide.Tensor", "floor_divide"))
    in_place = "_." in name

    def run(otherwise: Callable[[], Any], x: Tensor, divisor: Tensor | float, **kwargs: Any) -> Any:
        if isinstance(divisor, torch.Tensor) and not divisor.is_cpu:
            return otherwise()
        result = divided(divide, x, divisor, **kwargs)
        return x.copy_(result) if in_place else result

    return run


def divided(divide: Any, x: Tensor, divisor: Tensor | float, **kwargs: Any) -> Any:
    """Return a quotient that is rounded once.

    Args:
        divide: `aten::div` or its like.
        x: the dividend.
        divisor: a number, or a tensor without dimensions in CPU memory.
        **kwargs: of the op.
    """
    dtype = torch.result_type(x, divisor)
    if dtype in LOW_PRECISION:
        number = torch.as_tensor(divisor, dtype=torch.float32, device=x.device)
        return divide(x.to(torch.float32), number, **kwargs).to(dtype)
    return divide(x, torch.as_tensor(divisor, dtype=dtype, device=x.device), **kwargs)
