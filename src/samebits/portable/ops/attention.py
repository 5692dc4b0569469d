"""Attention: contractions, a softmax, and their gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from samebits.portable.kernels.accumulate import accumulate_
from samebits.portable.kernels.elementwise import unary
from samebits.portable.kernels.gemm import gemm
from samebits.portable.kernels.reductions import sum_over, sum_products_over
from samebits.portable.ops.checks import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from samebits.portable.registry import Table

_MOST_SCORES = 1 << 23
"""Scores that are held at the same time, in elements."""


@dataclass(frozen=True)
class Heads:
    """Queries, keys and values of (batch, heads, positions, size), keys repeated for groups of queries.

    Args:
        query, key: multiplied by the root of the scale.
        value: as it is.
        mask: what is added to scores, None for nothing; broadcasts to (batch, heads, queries, keys).
        is_causal: whether a query sees the keys up to its own position only.
        roots: what queries and keys were multiplied by.
        groups: how many heads of queries share one of keys.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    is_causal: bool
    roots: tuple[float, float]
    groups: int


def make_heads(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None
) -> Heads:
    """Scale and lay out what attention gets."""
    wanted = scale if scale is not None else 1 / math.sqrt(query.shape[-1])
    root = math.sqrt(abs(wanted))
    roots = (-root if wanted < 0 else root, root)
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.where(mask, torch.zeros((), dtype=query.dtype), -torch.inf)
    return Heads(query * roots[0], key * roots[1], value, mask, is_causal, roots, groups)


def _parts(heads: Heads) -> Iterator[tuple[slice, Tensor | None]]:
    """The flat heads in runs whose scores fit, each with its mask."""
    batch, count, queries = heads.query.shape[:3]
    keys = heads.key.shape[2]
    mask = heads.mask
    if heads.is_causal:
        hidden = torch.ones((queries, keys), dtype=torch.bool).triu_(1)
        mask = torch.where(hidden, -torch.inf, torch.zeros((), dtype=heads.query.dtype))
    flat = mask.expand(batch, count, queries, keys) if mask is not None else None
    each = max(1, _MOST_SCORES // max(1, queries * keys))
    for start in range(0, batch * count, each):
        run = slice(start, min(start + each, batch * count))
        at = torch.arange(run.start, run.stop)
        yield run, flat[at // count, at % count] if flat is not None and mask is not None and mask.dim() > 2 else mask


def _weights(query: Tensor, key: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The weights of the keys, and the logarithm of the sum of their exponentials; a row without keys is 0."""
    scores = gemm(query, key.transpose(1, 2))
    if mask is not None:
        scores.add_(mask)
    most = scores.amax(-1, keepdim=True)
    powers = unary("exp", scores.sub_(most))
    total = sum_over(powers, (-1,), True)
    weights = powers.div_(total)
    empty = most == -torch.inf
    if bool(empty.any()):
        weights.masked_fill_(empty, 0)
    return weights, (most + unary("log", total)).squeeze(-1)


def _flat(x: Tensor) -> Tensor:
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def attend(heads: Heads) -> tuple[Tensor, Tensor]:
    """The weighted values (batch, heads, queries, size), and the logarithms (batch, heads, queries)."""
    batch, count, queries = heads.query.shape[:3]
    query, key, value = _flat(heads.query), _flat(heads.key), _flat(heads.value)
    out = query.new_empty((batch, queries, count, value.shape[-1])).transpose(1, 2)
    logs = query.new_empty((batch * count, queries))
    flat = query.new_empty((batch * count, queries, value.shape[-1]))
    if heads.query.numel():
        for run, mask in _parts(heads):
            weights, logs[run] = _weights(query[run], key[run], mask)
            flat[run] = gemm(weights, value[run])
    return out.copy_(flat.view(batch, count, queries, -1) if flat.numel() else flat.reshape(out.shape)), logs.view(
        batch, count, queries
    )


def attend_backward(heads: Heads, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of query, key and value."""
    query, key, value, flat_grad = _flat(heads.query), _flat(heads.key), _flat(heads.value), _flat(grad)
    of_query, of_key, of_value = torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(value)
    if query.numel() and key.numel():
        for run, mask in _parts(heads):
            weights, _ = _weights(query[run], key[run], mask)
            of_value[run] = gemm(weights.transpose(1, 2), flat_grad[run])
            slope = gemm(flat_grad[run], value[run].transpose(1, 2))
            slope.sub_(sum_products_over(slope, weights, (-1,), True)).mul_(weights)
            of_query[run] = gemm(slope, key[run])
            of_key[run] = gemm(slope.transpose(1, 2), query[run])
    of_query.mul_(heads.roots[0])
    of_key.mul_(heads.roots[1])
    shaped = of_query.view(heads.query.shape), of_key.view(heads.key.shape), of_value.view(heads.value.shape)
    if heads.groups == 1:
        return shaped
    return shaped[0], _grouped(shaped[1], heads.groups), _grouped(shaped[2], heads.groups)


def _grouped(grad: Tensor, groups: int) -> Tensor:
    """The sums over the heads of queries that share a head of keys, ascending."""
    batch, count, keys, size = grad.shape
    out = grad.new_zeros((batch, count // groups, keys * size))
    index = (torch.arange(count) // groups)[None, :, None].expand(batch, count, keys * size)
    return accumulate_(out, index, grad.reshape(batch, count, keys * size)).view(batch, -1, keys, size)


def flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """`aten::_scaled_dot_product_flash_attention_for_cpu`."""
    if dropout_p:
        refuse("_scaled_dot_product_flash_attention_for_cpu", "with dropout")
    return attend(make_heads(query, key, value, attn_mask, is_causal, scale))


def flash_attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """`aten::_scaled_dot_product_flash_attention_for_cpu_backward`: computes the weights again."""
    del out, logsumexp
    if dropout_p:
        refuse("_scaled_dot_product_flash_attention_for_cpu_backward", "with dropout")
    return attend_backward(make_heads(query, key, value, attn_mask, is_causal, scale), grad_out)


def table() -> Table:
    """The ops of this module."""
    return {
        "_scaled_dot_product_flash_attention_for_cpu": flash_attention,
        "_scaled_dot_product_flash_attention_for_cpu_backward": flash_attention_backward,
    }
