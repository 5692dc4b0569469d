"""Complex numbers as pairs of real ones ("Complex numbers" in docs/reference/portable-numerics.md).

Complex tensors are complex64 or complex128, not lazily conjugated; real operands have the dtype of the parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits.portable.backends import backend_of
from samebits.portable.kernels.contractions import gemm
from samebits.portable.kernels.elementwise import binary, unary

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

NAMES = ("product", "quotient")
"""In the order of native/portable/pairs.h."""


def parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return views of the real and the imaginary parts."""
    pairs = torch.view_as_real(x)
    return pairs[..., 0], pairs[..., 1]


def joined(real: Tensor, imaginary: Tensor) -> Tensor:
    """Return the complex numbers with these parts."""
    return torch.complex(real, imaginary)


def of_pairs(pairs: Tensor) -> Tensor:
    """Return the complex numbers whose parts are along the last dimension; in the same memory if possible."""
    *others, last = pairs.stride()
    if last == 1 and pairs.numel() and not any(stride % 2 for stride in others):
        return torch.view_as_complex(pairs)
    return joined(pairs[..., 0], pairs[..., 1])


def by_parts(function: Callable[..., Tensor], *args: Any, **named: Any) -> Tensor:
    """Return what a linear function of real tensors gives for the real parts, and for the imaginary parts.

    Args:
        function: does not write to its arguments.
        args: complex tensors among other arguments.
        named: more arguments.
    """
    real, imaginary = (
        function(
            *(_part(each, at) for each in args), **{name: _part(each, at) for name, each in named.items()}
        )
        for at in (0, 1)
    )
    return joined(real, imaginary)


def _part(value: Any, at: int) -> Any:
    return parts(value)[at] if isinstance(value, torch.Tensor) and value.is_complex() else value


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return a b; at least one of them is complex."""
    if a.is_complex() and b.is_complex():
        return _of_two("product", a, b)
    z, factor = (a, b) if a.is_complex() else (b, a)
    return of_pairs(torch.view_as_real(z) * factor.unsqueeze(-1))


def divided(a: Tensor, b: Tensor) -> Tensor:
    """Return a / b; at least one of them is complex."""
    if not b.is_complex():
        return of_pairs(torch.view_as_real(a) / b.unsqueeze(-1))
    return _of_two("quotient", a if a.is_complex() else joined(a, torch.zeros_like(a)), b)


def _of_two(name: str, a: Tensor, b: Tensor) -> Tensor:
    if a.shape != b.shape:
        a, b = torch.broadcast_tensors(a, b)  # type: ignore[no-untyped-call]
    a, b = a.contiguous(), b.contiguous()
    out = torch.empty_like(a)
    if out.numel():
        backend_of(out).pairs(name, a, b, out)
    return out


def magnitude(x: Tensor) -> Tensor:
    """Return the distance from 0."""
    return binary("hypot", *parts(x))


def sign(x: Tensor) -> Tensor:
    """Return x over its magnitude, 0 for 0."""
    size = magnitude(x).unsqueeze(-1)
    pairs = torch.view_as_real(x)
    return of_pairs(torch.where(size == 0, torch.zeros_like(pairs), pairs / size))


def exponential(x: Tensor) -> Tensor:
    """Return e^x."""
    real, imaginary = parts(x)
    size = unary("exp", real)
    sine = torch.where(imaginary == 0, imaginary, size * unary("sin", imaginary))
    return joined(size * unary("cos", imaginary), sine)


def power(x: Tensor, exponent: int) -> Tensor:
    """Return x to a whole power, by squaring: the lowest bit of the exponent comes first."""
    square, found = x, None
    left = abs(exponent)
    while left:
        if left & 1:
            found = square if found is None else product(found, square)
        left >>= 1
        square = product(square, square) if left else square
    if found is None:
        return torch.ones_like(x)
    return divided(torch.ones_like(x), found) if exponent < 0 else found.clone()


def matrix_product(a: Tensor, b: Tensor) -> Tensor:
    """Return `a @ b` of two matrices or of batches of them, both complex: four real products."""
    (ar, ai), (br, bi) = parts(a), parts(b)
    return joined(gemm(ar, br).sub_(gemm(ai, bi)), gemm(ar, bi).add_(gemm(ai, br)))
