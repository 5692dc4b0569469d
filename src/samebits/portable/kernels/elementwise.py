"""Functions of one and of two numbers ("Elementary functions" in docs/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable.arrays import as_array, as_tensor
from samebits.portable.native import load

if TYPE_CHECKING:
    from torch import Tensor

UNARY = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "sigmoid", "erf", "rsqrt"),
    *("erfc", "ndtr", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh"),
    *("sinc", "logit", "log_ndtr", "erfinv", "lgamma", "digamma", "sin", "cos", "tan"),
)
BINARY = (
    *("pow", "atan2", "xlogy", "xlog1py", "hypot", "logaddexp", "logaddexp2"),
    *("tanh_backward", "sigmoid_backward"),
)
"""Both in the order of native/portable/elementwise.h."""

_UNARY_CODES = {name: code for code, name in enumerate(UNARY)}
_BINARY_CODES = {name: code for code, name in enumerate(BINARY)}


def unary(name: str, x: Tensor) -> Tensor:
    """A function of every element.

    Args:
        name: one of `UNARY`.
        x: float32 or float64, any strides.

    Returns:
        the same shape and dtype, new memory; dense inputs keep their strides.
    """
    x = x if x.is_contiguous() else _dense(x)
    return _write(name, x, torch.empty_like(x))


def unary_(name: str, x: Tensor) -> Tensor:
    """The same, written over x.

    Args:
        name: one of `UNARY`.
        x: float32 or float64, any strides.
    """
    return _write(name, x, x) if x.is_contiguous() else x.copy_(unary(name, x))


def _write(name: str, x: Tensor, out: Tensor) -> Tensor:
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.elementary import unary as reference

        return out.copy_(as_tensor(reference(name, as_array(x))))
    count = x.numel()
    if count:
        words = (_UNARY_CODES[name], x.dtype == torch.float64, x.data_ptr(), out.data_ptr(), count)
        kernels.call("elementwise_unary", words)
    return out


def binary(name: str, x: Tensor, y: Tensor) -> Tensor:
    """A function of every pair of elements.

    Args:
        name: one of `BINARY`.
        x: float32 or float64.
        y: the same dtype; a shape that broadcasts with that of x.

    Returns:
        the shape of both together, the same dtype, new memory.
    """
    if x.shape != y.shape:
        x, y = torch.broadcast_tensors(x, y)  # type: ignore[no-untyped-call]
    x = x if x.is_contiguous() else _dense(x)
    y = y if y.stride() == x.stride() else torch.empty_like(x).copy_(y)
    out = torch.empty_like(x)
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.elementary import binary as reference

        return out.copy_(as_tensor(reference(name, as_array(x), as_array(y))))
    count = x.numel()
    if count:
        pointers = (x.data_ptr(), y.data_ptr(), out.data_ptr())
        kernels.call("elementwise_binary", (_BINARY_CODES[name], x.dtype == torch.float64, *pointers, count))
    return out


def _dense(x: Tensor) -> Tensor:
    """X itself if its elements fill their memory, otherwise a copy with the strides torch gives a result."""
    out = torch.empty_like(x)
    return x if out.stride() == x.stride() else out.copy_(x)
