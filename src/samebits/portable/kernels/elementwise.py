"""Functions of one and of two numbers ("Elementary functions" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable.backends import backend_of

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


def unary(name: str, x: Tensor) -> Tensor:
    """Compute a function of every element.

    Args:
        name: one of `UNARY`.
        x: float32 or float64, any strides.

    Returns:
        the same shape and dtype, new memory; dense inputs keep their strides.
    """
    x = x if x.is_contiguous() else _dense(x)
    return _write(name, x, torch.empty_like(x))


def unary_(name: str, x: Tensor) -> Tensor:
    """Compute the same over x.

    Args:
        name: one of `UNARY`.
        x: float32 or float64, any strides.
    """
    return _write(name, x, x) if x.is_contiguous() else x.copy_(unary(name, x))


def _write(name: str, x: Tensor, out: Tensor) -> Tensor:
    if x.numel():
        backend_of(x).unary(name, x, out)
    return out


def binary(name: str, x: Tensor, y: Tensor) -> Tensor:
    """Compute a function of every pair of elements.

    Args:
        name: one of `BINARY`.
        x: float32 or float64.
        y: the same dtype; a shape that broadcasts with the shape of x.

    Returns:
        the shape of both together, the same dtype, new memory.
    """
    if x.shape != y.shape:
        x, y = torch.broadcast_tensors(x, y)  # type: ignore[no-untyped-call]
    x = x if x.is_contiguous() else _dense(x)
    y = y if y.stride() == x.stride() else torch.empty_like(x).copy_(y)
    out = torch.empty_like(x)
    if x.numel():
        backend_of(x).binary(name, x, y, out)
    return out


def sqrt(x: Tensor) -> Tensor:
    """Compute the square root of every element, rounded once.

    `torch.sqrt` on the CPU is not: with MKL it is the vector library's, 0.6% of float32 results are one unit
    off, and 19% under `MKL_CBWR=COMPATIBLE` (torch 2.13).

    Args:
        x: float32 or float64.

    Returns:
        the same shape and dtype, new memory.
    """
    out = torch.empty_like(x)
    return _write_root(x if out.stride() == x.stride() else torch.empty_like(x).copy_(x), out)


def sqrt_(x: Tensor) -> Tensor:
    """Compute the same over x.

    Args:
        x: float32 or float64.
    """
    return _write_root(x, x) if x.is_contiguous() else x.copy_(sqrt(x))


def _write_root(x: Tensor, out: Tensor) -> Tensor:
    """Write the roots into memory with the strides of x, which fill it."""
    if x.numel():
        backend_of(x).square_root(x, out)
    return out


def _dense(x: Tensor) -> Tensor:
    """Return x itself if its elements fill their memory, else a copy with the strides of torch's results."""
    out = torch.empty_like(x)
    return x if out.stride() == x.stride() else out.copy_(x)
