"""Softmax of rows, its logarithm, their gradients, and attention, whole matrices at a time.

See "Softmax" in docs/reference/portable-numerics.md. The inputs of attention are finite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from samebits.portable.reference.contractions import gemm
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


def attend(
    query: Array, key: Array, value: Array, mask: Array | None, *, is_causal: bool
) -> tuple[Array, Array]:
    """Return the weighted values, and the logarithms of sums of exponentials.

    Args:
        query: (batch, heads, queries, size), multiplied by the root of the scale.
        key: (batch, heads, keys, size), multiplied by the root of the scale.
        value: (batch, heads, keys, any size).
        mask: what is added to scores, None for nothing.
        is_causal: whether a query sees the keys up to its own position only.
    """
    scores = _scores(query, key, mask, is_causal)
    most = scores.max(-1, initial=scores.dtype.type(-np.inf)) + scores.dtype.type(0)
    with np.errstate(all="ignore"):
        powers = unary("exp", scores - most[..., None])
        logs = most + unary("log", sum_over(powers, [3]))
    return gemm(_weights(scores), value), np.where(most == -np.inf, most, logs)


def attend_backward(
    query: Array, key: Array, value: Array, mask: Array | None, grad: Array, *, is_causal: bool
) -> tuple[Array, Array, Array]:
    """Return the gradients of query, key and value."""
    weights = _weights(_scores(query, key, mask, is_causal))
    flat = weights.reshape(-1, weights.shape[-1])
    slope = softmax_gradient(flat, gemm(grad, value.swapaxes(2, 3)).reshape(flat.shape)).reshape(
        weights.shape
    )
    turned = slope.swapaxes(2, 3)
    return gemm(slope, key), gemm(turned, query), gemm(weights.swapaxes(2, 3), grad)


def _scores(query: Array, key: Array, mask: Array | None, is_causal: bool) -> Array:
    scores = gemm(query, key.swapaxes(2, 3))
    if mask is not None:
        scores = scores + mask
    if is_causal:
        scores = np.where(np.tri(scores.shape[2], scores.shape[3]) > 0, scores, scores.dtype.type(-np.inf))
    return scores


def _weights(scores: Array) -> Array:
    flat = softmax(scores.reshape(-1, scores.shape[-1])).reshape(scores.shape)
    is_masked = (scores == -np.inf).all(-1, keepdims=True)
    weights: Array = np.where(is_masked, scores.dtype.type(0), flat)
    return weights
