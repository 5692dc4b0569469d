"""Attention: contractions and a softmax, whole matrices at a time. Inputs are finite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from samebits.portable.reference.contraction import gemm
from samebits.portable.reference.elementary import unary
from samebits.portable.reference.reductions import sum_over
from samebits.portable.reference.softmax import softmax, softmax_gradient

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array


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
    found: Array = np.where((scores == -np.inf).all(-1, keepdims=True), scores.dtype.type(0), flat)
    return found
