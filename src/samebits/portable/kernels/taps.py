"""Which inputs make an output of an interpolation, and with what weights: arithmetic of NumPy.

The tests of both users compare the results with torch's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = tuple[Any, Any]
"""Two arrays of (outputs, taps): the inputs, and their weights."""


def interpolation_taps(
    kind: str, size: int, outputs: int, *, align: bool, scale: float | None, real: type[Any]
) -> Arrays:
    """Return the taps of each output along one dimension.

    Args:
        kind: `linear`, `cubic`, or these with `_aa`: antialiased.
        size: of the input.
        outputs: how many there are.
        align: whether the corners lie upon each other.
        scale: the factor that the user gave.
        real: `np.float32` or `np.float64`, in which positions are computed.
    """
    step = scale_of(size, outputs, align=align, scale=scale, real=real)
    at = np.arange(outputs).astype(real)
    makers = {"linear": _linear, "cubic": _cubic, "linear_aa": _smooth, "cubic_aa": _smooth}
    index, weight = makers[kind](kind, size, at, step, align)
    return index.astype(np.int64), weight.astype(real)


def scale_of(size: int, outputs: int, *, align: bool, scale: float | None, real: Any) -> Any:
    """Return how many inputs lie between two outputs."""
    if align:
        return real(size - 1) / real(outputs - 1) if outputs > 1 else real(0)
    return real(1.0 / scale) if scale else real(size) / real(outputs)


def _linear(kind: str, size: int, at: Any, step: Any, align: bool) -> tuple[Any, Any]:
    del kind
    real = at.dtype.type
    source = step * at if align else np.maximum(step * (at + real(0.5)) - real(0.5), real(0))
    first = np.minimum(source.astype(np.int64), size - 1)
    second_weight = np.minimum(np.maximum(source - first.astype(at.dtype), real(0)), real(1))
    second = first + (first < size - 1)
    return np.stack([first, second], 1), np.stack([real(1) - second_weight, second_weight], 1)


def _cubic(kind: str, size: int, at: Any, step: Any, align: bool) -> tuple[Any, Any]:
    del kind
    real = at.dtype.type
    source = step * at if align else step * (at + real(0.5)) - real(0.5)
    floor = np.floor(source)
    index = np.clip(floor.astype(np.int64)[:, None] + np.arange(-1, 3), 0, size - 1)
    return index, np.stack(cubic_weights(np.clip(source - floor, real(0), real(1))), 1)


def cubic_weights(t: Any) -> list[Any]:
    """Return the weights of the four inputs around a position that is t after the second of them.

    Args:
        t: 0 .. 1, of NumPy or torch.
    """
    a = -0.75

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _smooth(kind: str, size: int, at: Any, step: Any, align: bool) -> tuple[Any, Any]:
    del align
    real = at.dtype.type
    half = real(1 if kind == "linear_aa" else 2)
    support = half * step if step >= 1 else half
    narrowing = real(1) / step if step >= 1 else real(1)
    center = step * (at + real(0.5))
    first = np.maximum((center - support + real(0.5)).astype(np.int64), 0)
    count = np.minimum((center + support + real(0.5)).astype(np.int64), size) - first
    taps = np.arange(count.max(initial=1))
    x = np.abs(((taps + first[:, None]).astype(at.dtype) - center[:, None] + real(0.5)) * narrowing)
    weight = np.where(taps < count[:, None], _smooth_weight(kind, x), real(0))
    total = weight[:, :1]
    for tap in range(1, len(taps)):
        total = total + weight[:, tap : tap + 1]
    index = np.where(taps < count[:, None], taps + first[:, None], first[:, None])
    return index, np.where(total != 0, weight / np.where(total != 0, total, real(1)), weight)


def _smooth_weight(kind: str, x: Any) -> Any:
    if kind == "linear_aa":
        return np.where(x < 1, 1 - x, 0)
    a = -0.5
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))
