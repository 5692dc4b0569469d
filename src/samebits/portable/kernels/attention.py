"""Softmax and attention, forward and backward: functions of tensors."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from samebits.portable.backends import backend_of

NAMES = ("softmax", "log_softmax", "softmax_gradient", "log_softmax_gradient")
"""In the order of native/portable/softmax.h."""


def softmax(x: Tensor, dim: int, log: bool = False) -> Tensor:
    """Return exp(x) / sum of exp(x) over a dimension, or its logarithm.

    Args:
        x: float32 or float64, any strides.
        dim: the dimension.
        log: whether the logarithm is wanted.
    """
    return _by_rows(NAMES[log], x, None, dim)


def softmax_gradient(gradient: Tensor, output: Tensor, dim: int, log: bool = False) -> Tensor:
    """Return the gradient of the input of `softmax`.

    Args:
        gradient: of the output.
        output: what `softmax` gave.
        dim: as for `softmax`.
        log: as for `softmax`.
    """
    return _by_rows(NAMES[2 + log], output, gradient, dim)


def _by_rows(name: str, x: Tensor, gradient: Tensor | None, dim: int) -> Tensor:
    last = x.dim() == 0 or dim % x.dim() == x.dim() - 1
    if last:
        return _rows(name, x.contiguous(), None if gradient is None else gradient.contiguous())
    moved = None if gradient is None else gradient.movedim(dim, -1).contiguous()
    return _rows(name, x.movedim(dim, -1).contiguous(), moved).movedim(-1, dim).contiguous()


def _rows(name: str, x: Tensor, gradient: Tensor | None) -> Tensor:
    out = torch.empty_like(x)
    if not x.numel():
        return out
    width = x.shape[-1] if x.dim() else 1
    backend_of(x).softmax_rows(name, x, gradient, out, width)
    return out


class Heads(NamedTuple):
    """Queries, keys and values of (batch, heads, positions, size); heads of queries may share one of keys.

    Args:
        query: multiplied by the root of the scale, float32 or float64.
        key: multiplied by the root of the scale.
        value: as it is.
        mask: what is added to scores, (batch, heads, queries, keys), of any strides; None for nothing.
        is_causal: whether a query sees the keys up to its own position only.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    is_causal: bool


def attend(heads: Heads) -> tuple[Tensor, Tensor]:
    """Return the weighted values, (batch, heads, positions, size), and logarithms of sums of exponentials.

    The values lie in memory as the queries do, as in torch 2.13: some scripts view them without a copy.
    """
    batch, count, queries = heads.query.shape[:3]
    out = _like(heads.query, heads.value.shape[-1])
    logs = heads.query.new_empty((batch, count, queries))
    if out.numel() and heads.key.numel():
        backend_of(out).attend(heads, out, logs)
        return out, logs
    return out.zero_(), logs.fill_(-torch.inf)


def attend_backward(heads: Heads, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of query, key and value, each of them for every head of queries."""
    batch, count = heads.query.shape[:2]
    of_query, of_key, of_value = (
        torch.zeros((batch, count, *x.shape[2:]), dtype=x.dtype, device=x.device)
        for x in (heads.query, heads.key, heads.value)
    )
    if grad.numel() and heads.key.numel():
        backend_of(grad).attend_backward(heads, grad, (of_query, of_key, of_value))
    return of_query, of_key, of_value


def _like(query: Tensor, size: int) -> Tensor:
    """Return memory for values of that size, its dimensions in the order of the queries'."""
    order = sorted(range(3), key=lambda dim: query.stride()[dim], reverse=True)
    out = query.new_empty([*(query.shape[dim] for dim in order), size])
    return out.permute(*(order.index(dim) for dim in range(3)), 3)
