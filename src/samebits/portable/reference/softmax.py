"""Softmax of rows, its logarithm, their gradients ("Softmax" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from samebits.portable.reference.elementary import unary
from samebits.portable.reference.reductions import sum_over, sum_products_over

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array


def softmax(x: Array) -> Array:
    """Return softmax along the last of two dimensions."""
    _, powers, total = _parts(x)
    with np.errstate(all="ignore"):
        return powers / total[:, None]


def log_softmax(x: Array) -> Array:
    """Return the logarithm of `softmax`."""
    shifted, _, total = _parts(x)
    with np.errstate(all="ignore"):
        return shifted - unary("log", total)[:, None]


def softmax_gradient(y: Array, gradient: Array) -> Array:
    """Return the gradient of the input of `softmax`, y being its output."""
    total = sum_products_over(gradient, y, [1])
    with np.errstate(all="ignore"):
        return (gradient - total[:, None]) * y


def log_softmax_gradient(y: Array, gradient: Array) -> Array:
    """Return the gradient of the input of `log_softmax`, y being its output."""
    total = sum_over(gradient, [1])
    with np.errstate(all="ignore"):
        result: Array = gradient - unary("exp", y) * total[:, None]
    return result


def _parts(x: Array) -> tuple[Array, Array, Array]:
    with np.errstate(all="ignore"):
        most = np.fmax.reduce(x, axis=1, initial=x.dtype.type(-np.inf), keepdims=True) + x.dtype.type(0)
        shifted = x - most
    powers = unary("exp", shifted)
    return shifted, powers, sum_over(powers, [1])
