"""Attention ("Attention" in docs/portable-numerics.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from samebits.portable.arrays import as_array, as_tensor
from samebits.portable.native import load


@dataclass(frozen=True)
class Heads:
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
    """The weighted values, (batch, heads, positions, size), and logarithms of sums of exponentials.

    The values lie in memory as the queries do, as in torch 2.13: some scripts view them without a copy.
    """
    batch, count, queries = heads.query.shape[:3]
    out = _like(heads.query, heads.value.shape[-1])
    logs = heads.query.new_empty((batch, count, queries))
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.attention import attend as reference

        found = reference(*_arrays(heads), is_causal=heads.is_causal)
        return out.copy_(as_tensor(found[0])), logs.copy_(as_tensor(found[1]))
    if not out.numel() or not heads.key.numel():
        return out.zero_(), logs.fill_(-torch.inf)
    kernels.call("attention", (*_words(heads, out, backward=0), logs.data_ptr(), 0, 0, 0))
    return out, logs


def attend_backward(heads: Heads, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of query, key and value; those of keys and values for each head of queries."""
    batch, count = heads.query.shape[:2]
    of_query, of_key, of_value = (
        torch.zeros((batch, count, *x.shape[2:]), dtype=x.dtype)
        for x in (heads.query, heads.key, heads.value)
    )
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.attention import attend_backward as reference

        found = reference(*_arrays(heads), as_array(grad), is_causal=heads.is_causal)
        for out, value in zip((of_query, of_key, of_value), found, strict=True):
            out.copy_(as_tensor(value))
    elif grad.numel() and heads.key.numel():
        rows = _rows(grad)  # kept until the kernel has read it
        addresses = (0, of_query.data_ptr(), of_key.data_ptr(), of_value.data_ptr())
        kernels.call("attention", (*_words(heads, rows, backward=1), *addresses))
    return of_query, of_key, of_value


def _like(query: Tensor, size: int) -> Tensor:
    """Memory for values of that size, its dimensions in the order of the queries'."""
    order = sorted(range(3), key=lambda dim: query.stride()[dim], reverse=True)
    out = query.new_empty([*(query.shape[dim] for dim in order), size])
    return out.permute(*(order.index(dim) for dim in range(3)), 3)


def _rows(x: Tensor) -> Tensor:
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def _arrays(heads: Heads) -> tuple[Any, Any, Any, Any]:
    groups = heads.query.shape[1] // heads.key.shape[1]
    key, value = (as_array(x.repeat_interleave(groups, 1)) for x in (heads.key, heads.value))
    return (
        as_array(heads.query),
        key,
        value,
        None if heads.mask is None else as_array(heads.mask),
    )


def _words(heads: Heads, out: Tensor, *, backward: int) -> tuple[int, ...]:
    batch, count, queries, size = heads.query.shape
    keys = heads.key.shape[2]
    head = (int(out.dtype == torch.float64), backward, batch * count, count, count // heads.key.shape[1])
    sizes = (queries, keys, size, heads.value.shape[-1], int(heads.is_causal))
    sides = [n for x in (heads.query, heads.key, heads.value, out) for n in (x.data_ptr(), *x.stride()[:3])]
    mask = (heads.mask.data_ptr(), *heads.mask.stride()) if heads.mask is not None else (0, 0, 0, 0, 0)
    return (*head, *sizes, *sides, *mask)
