"""Normalisation layers ("Normalisation" in docs/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from samebits.portable.reference.fma import fma
from samebits.portable.reference.reductions import (
    sum_cross_over,
    sum_deviations_over,
    sum_over,
    sum_products_over,
)

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array


def layer_norm(x: Array, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """The rows of a matrix normalised; their means and 1 / sqrt(variance + eps)."""
    width = x.dtype.type(x.shape[1])
    with np.errstate(all="ignore"):
        mean = sum_over(x, [1]) / width
        variance = sum_deviations_over(x, mean, [1]) / width
        rstd = 1 / np.sqrt(variance + x.dtype.type(eps))
        normal = (x - mean[:, None]) * rstd[:, None]
    one, zero = np.ones(1, x.dtype), np.zeros(1, x.dtype)
    return fma(normal, one if weight is None else weight, zero if bias is None else bias), mean, rstd


def layer_norm_gradient(gradient: Array, x: Array, mean: Array, rstd: Array, weight: Array | None) -> Array:
    """The gradient of x."""
    width = x.dtype.type(x.shape[1])
    with np.errstate(all="ignore"):
        scaled = gradient if weight is None else gradient * weight
        shift = sum_over(scaled, [1]) / width
        slope = sum_cross_over(x, mean, scaled, [1]) / width * rstd * rstd
        return fma(mean[:, None] - x, slope[:, None], scaled - shift[:, None]) * rstd[:, None]


def layer_norm_weight_gradients(gradient: Array, x: Array, mean: Array, rstd: Array) -> tuple[Array, Array]:
    """The gradients of the weight and the bias."""
    with np.errstate(all="ignore"):
        normal = (x - mean[:, None]) * rstd[:, None]
    return sum_products_over(gradient, normal, [0]), sum_over(gradient, [0])


def scale_channels(x: Array, mean: Array, scale: Array, shift: Array) -> Array:
    """fma(x - mean, scale, shift); x is (outer, channels, inner)."""
    with np.errstate(all="ignore"):
        return fma(x - mean[:, None], scale[:, None], shift[:, None])


def channels_gradient(
    gradient: Array, x: Array, mean: Array, slope: Array, weight: Array, shift: Array, scale: Array
) -> Array:
    """fma(mean - x, slope, gradient * weight - shift) * scale."""
    with np.errstate(all="ignore"):
        inner = gradient * weight[:, None] - shift[:, None]
        return fma(mean[:, None] - x, slope[:, None], inner) * scale[:, None]
