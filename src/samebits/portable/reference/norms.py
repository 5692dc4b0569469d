"""Normalisation layers ("Normalisation" in docs/reference/portable-numerics.md)."""

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
    from collections.abc import Sequence

    from samebits.portable.reference.fma import Array


def layer_norm(x: Array, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """Return the normalised rows of a matrix, their means and 1 / sqrt(variance + eps)."""
    width = x.dtype.type(x.shape[1])
    with np.errstate(all="ignore"):
        mean = sum_over(x, [1]) / width
        variance = sum_deviations_over(x, mean, [1]) / width
        rstd = 1 / np.sqrt(variance + x.dtype.type(eps))
        normal = (x - mean[:, None]) * rstd[:, None]
    one, zero = np.ones(1, x.dtype), np.zeros(1, x.dtype)
    return fma(normal, one if weight is None else weight, zero if bias is None else bias), mean, rstd


def layer_norm_gradient(gradient: Array, x: Array, mean: Array, rstd: Array, weight: Array | None) -> Array:
    """Return the gradient of x."""
    width = x.dtype.type(x.shape[1])
    with np.errstate(all="ignore"):
        scaled = gradient if weight is None else gradient * weight
        shift = sum_over(scaled, [1]) / width
        slope = sum_cross_over(x, mean, scaled, [1]) / width * rstd * rstd
        return fma(mean[:, None] - x, slope[:, None], scaled - shift[:, None]) * rstd[:, None]


def layer_norm_weight_gradients(gradient: Array, x: Array, mean: Array, rstd: Array) -> tuple[Array, Array]:
    """Return the gradients of the weight and the bias."""
    with np.errstate(all="ignore"):
        normal = (x - mean[:, None]) * rstd[:, None]
    return sum_products_over(gradient, normal, [0]), sum_over(gradient, [0])


def group_norm(
    x: Array, weight: Array | None, bias: Array | None, groups: int, eps: float
) -> tuple[Array, Array, Array]:
    """Return the groups of channels normalised, their means and 1 / sqrt(variance + eps).

    Args:
        x: (samples, channels, positions).
        weight: for each channel, or None.
        bias: likewise.
        groups: how many.
        eps: added to the variance.
    """
    samples, channels, positions = x.shape
    rows = x.reshape(samples * groups, -1)
    width = x.dtype.type(rows.shape[1])
    with np.errstate(all="ignore"):
        mean = sum_over(rows, [1]) / width
        variance = sum_deviations_over(rows, mean, [1]) / width
        rstd = 1 / np.sqrt(variance + x.dtype.type(eps))
        each_mean, each_rstd = (np.repeat(t, channels // groups) for t in (mean, rstd))
        scale = each_rstd if weight is None else each_rstd * np.tile(weight, samples)
    shift = np.zeros(samples * channels, x.dtype) if bias is None else np.tile(bias, samples)
    out = scale_channels(x.reshape(1, -1, positions), each_mean, scale, shift)
    return out.reshape(x.shape), mean.reshape(samples, groups), rstd.reshape(samples, groups)


def group_norm_gradient(
    gradient: Array, x: Array, mean: Array, rstd: Array, weight: Array | None
) -> tuple[Array, Array, Array]:
    """Return the gradients of x, of the weight and of the bias."""
    samples, channels, positions = x.shape
    groups = mean.shape[1]
    each = channels // groups
    flat = [t.reshape(1, -1, positions) for t in (gradient, x)]
    each_mean, each_rstd = (np.repeat(t.ravel(), each) for t in (mean, rstd))
    sums, crosses = sum_over(flat[0], [0, 2]), sum_cross_over(flat[1], each_mean, flat[0], [0, 2])
    w = np.ones(channels, x.dtype) if weight is None else weight
    grouped = np.tile(w, samples).reshape(-1, each)
    count = x.dtype.type(each * positions)
    with np.errstate(all="ignore"):
        shift = sum_products_over(sums.reshape(-1, each), grouped, [1]) / count
        cross = sum_products_over(crosses.reshape(-1, each), grouped, [1])
        slope = cross / count * rstd.ravel() * rstd.ravel()
    terms = (each_mean, np.repeat(slope, each), np.tile(w, samples), np.repeat(shift, each), each_rstd)
    out = channels_gradient(flat[0], flat[1], terms)
    shape = samples, channels
    of_weight = sum_products_over(crosses.reshape(shape), each_rstd.reshape(shape), [0])
    return out.reshape(x.shape), of_weight, sum_over(sums.reshape(shape), [0])


def batch_norm_gradient(
    gradient: Array, x: Array, statistics: tuple[Array, Array], weight: Array | None, *, training: bool
) -> tuple[Array, Array, Array]:
    """Return the gradients of x, of the weight and of the bias.

    Args:
        gradient: (outer, channels, inner).
        x: likewise.
        statistics: mean and 1 / sqrt(variance + eps), one value for each channel.
        weight: likewise, or None.
        training: whether the statistics were computed from x.
    """
    mean, rstd = statistics
    sums, crosses = sum_over(gradient, [0, 2]), sum_cross_over(x, mean, gradient, [0, 2])
    count, zero = x.dtype.type(x.shape[0] * x.shape[2]), np.zeros_like(rstd)
    with np.errstate(all="ignore"):
        slope = crosses / count * rstd * rstd if training else zero
        shift = sums / count if training else zero
        scale = rstd if weight is None else rstd * weight
        terms = (mean, slope, np.ones_like(rstd), shift, scale)
        return channels_gradient(gradient, x, terms), crosses * rstd, sums


def scale_channels(x: Array, mean: Array, scale: Array, shift: Array) -> Array:
    """Return fma(x - mean, scale, shift); x is (outer, channels, inner)."""
    with np.errstate(all="ignore"):
        return fma(x - mean[:, None], scale[:, None], shift[:, None])


def channels_gradient(gradient: Array, x: Array, terms: Sequence[Array]) -> Array:
    """Return fma(mean - x, slope, gradient * weight - shift) * scale.

    Args:
        gradient: (outer, channels, inner).
        x: likewise.
        terms: mean, slope, weight, shift and scale: one value for each channel.
    """
    mean, slope, weight, shift, scale = (term[:, None] for term in terms)
    with np.errstate(all="ignore"):
        return fma(mean - x, slope, gradient * weight - shift) * scale
