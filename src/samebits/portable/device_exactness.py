"""Ops of torch that are exact on the CPU and not on a GPU: there they are made to be.

`x / 3` on a GPU multiplies by 1 / 3, which has been rounded already (`div_true_kernel_cuda` and its like in
ATen/native/cuda/BinaryDivTrueKernel.cu, 2.13.0). Where the divisor lies on the GPU, it divides. `scatter`
with an index that is there twice keeps either value; on the CPU the last one stays.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.kernel_overrides import KernelOverrides, op_named
from samebits.portable._devices import CUDA, device_types
from samebits.portable._tensors import LOW_PRECISION

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

_DIVISIONS = ("div.Tensor", "div_.Tensor", "div.Tensor_mode", "div_.Tensor_mode")
_FLOORED = ("floor_divide", "floor_divide_.Tensor")
_SCATTERED = ("scatter.src", "scatter_.src", "scatter.src_out")


@functools.cache
def exact_on_gpu() -> KernelOverrides:
    """Return the kernels of these ops for tensors on a GPU; none where torch takes none from Python."""
    if CUDA not in device_types():
        return KernelOverrides({}, "CUDA")
    divisions = {name: _division(name) for name in (*_DIVISIONS, *_FLOORED)}
    return KernelOverrides(divisions | {name: _scattering(name) for name in _SCATTERED}, "CUDA")


def _scattering(name: str) -> Callable[..., Any]:
    in_place = "_." in name

    def run(_: Callable[[], Any], x: Tensor, dim: int, index: Tensor, src: Tensor, out: Any = None) -> Any:
        result = scattered(x, dim, index, src)
        if in_place:
            return x.copy_(result)
        return result if out is None else out.resize_(result.shape).copy_(result)

    return run


def scattered(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy of x with values of `src` at some places; of several for one place the last one.

    Args:
        x: of any dtype.
        dim: along which the indices are.
        index: int64, no larger than x but along `dim`, nor than `src`.
        src: the values.
    """
    if not index.numel():
        return x.clone()
    if not x.dim():
        return scattered(x.view(1), 0, index.reshape(1), src.reshape(1)).view(())
    region = tuple(slice(n if d != dim % x.dim() else None) for d, n in enumerate(index.shape))
    shape = [1] * x.dim()
    shape[dim] = index.shape[dim]
    place = torch.arange(index.shape[dim], device=x.device).view(shape).expand(index.shape)
    last = torch.full(x[region].shape, -1, dtype=torch.int64, device=x.device)
    last = last.scatter_reduce(dim, index.to(torch.int64), place, "amax")
    given = src[tuple(slice(n) for n in index.shape)].gather(dim, last.clamp(min=0))
    result = x.clone()
    result[region] = torch.where(last >= 0, given, x[region])
    return result


def _division(name: str) -> Callable[..., Any]:
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
