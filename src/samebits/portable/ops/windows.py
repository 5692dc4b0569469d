"""Windows for signals, in float64 ("Windows" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable._registry import declares_handlers, rounds_itself
from samebits.portable.kernels.elementwise import sqrt, unary
from samebits.portable.ops.bessel import bessel

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from samebits.portable._registry import Handler, Table

    Shape = Callable[..., Tensor]


def _window(
    shape: Shape,
    window_length: int,
    periodic: bool = True,
    *parameters: float,
    dtype: torch.dtype | None = None,
    **_: Any,
) -> Tensor:
    """Return `shape` at positions 0 .. 1; a periodic window is the longer one without its last value."""
    if window_length < 0:
        raise RuntimeError(f"a window of {window_length} values: 0 or more were expected")
    dtype = dtype or torch.get_default_dtype()
    if window_length <= 1:
        return torch.ones(window_length, dtype=dtype)
    last = window_length if periodic else window_length - 1
    positions = torch.arange(window_length, dtype=torch.int64).to(torch.float64) / last
    return shape(positions, *parameters).to(dtype)


def _cosine(turns: Tensor) -> Tensor:
    return unary("cos", turns * (2 * math.pi))


def _hamming(positions: Tensor, alpha: float = 0.54, beta: float = 0.46) -> Tensor:
    return alpha - _cosine(positions) * beta


def _hann(positions: Tensor) -> Tensor:
    return _hamming(positions, 0.5, 0.5)


def _blackman(positions: Tensor) -> Tensor:
    return (_cosine(positions * 2) * 0.08 - _cosine(positions) * 0.5) + 0.42


def _bartlett(positions: Tensor) -> Tensor:
    return torch.where(positions <= 0.5, positions * 2, 2 - positions * 2)


def _kaiser(positions: Tensor, beta: float = 12.0) -> Tensor:
    side = positions * 2 - 1
    top = torch.full_like(positions, beta)
    return bessel(sqrt(1 - side * side) * beta, 0, scaled=False) / bessel(top, 0, scaled=False)


@declares_handlers
def _factories() -> Table:
    shapes: dict[str, tuple[Shape, tuple[str, ...]]] = {
        "aten::bartlett_window": (_bartlett, ("default", "periodic")),
        "aten::blackman_window": (_blackman, ("default", "periodic")),
        "aten::hamming_window": (_hamming, ("default", "periodic", "periodic_alpha", "periodic_alpha_beta")),
        "aten::hann_window": (_hann, ("default", "periodic")),
        "aten::kaiser_window": (_kaiser, ("default", "periodic", "beta")),
    }
    handlers: dict[str, Handler] = {}
    for name, (shape, overloads) in shapes.items():
        handler = rounds_itself(functools.partial(_window, shape))
        handlers |= {f"{name}.{overload}".removesuffix(".default"): handler for overload in overloads}
    return handlers
