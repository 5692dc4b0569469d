"""Attention: contractions, a softmax, and their gradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels.accumulate import accumulate_
from samebits.portable.kernels.attention import Heads, attend, attend_backward
from samebits.portable.ops.checks import refuse

if TYPE_CHECKING:
    from torch import Tensor


def _roots(query: Tensor, scale: float | None) -> tuple[float, float]:
    """Return the factors of queries and keys."""
    wanted = scale if scale is not None else 1 / math.sqrt(query.shape[-1])
    root = math.sqrt(abs(wanted))
    return (-root if wanted < 0 else root), root


def _heads(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    roots: tuple[float, float],
) -> Heads:
    if mask is not None:
        if mask.dtype == torch.bool:
            mask = torch.where(mask, torch.zeros((), dtype=query.dtype), -torch.inf)
        mask = mask.expand(*query.shape[:3], key.shape[2])
    key = _dense(key * roots[1])
    return Heads(_dense(query * roots[0]), key, _dense(value), mask, is_causal)


def _dense(x: Tensor) -> Tensor:
    return x if x.stride(-1) == 1 else x.contiguous()


def _grouped(grad: Tensor, groups: int) -> Tensor:
    """Return the sums over the heads of queries that share a head of keys, ascending."""
    batch, count, keys, size = grad.shape
    if groups == 1:
        return grad
    out = grad.new_zeros((batch, count // groups, keys * size))
    index = (torch.arange(count) // groups)[None, :, None].expand(batch, count, keys * size)
    return accumulate_(out, index, grad.reshape(batch, count, keys * size)).view(batch, -1, keys, size)


@handles("aten::_scaled_dot_product_flash_attention_for_cpu")
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
    """Compute `aten::_scaled_dot_product_flash_attention_for_cpu`."""
    if dropout_p:
        refuse("_scaled_dot_product_flash_attention_for_cpu", "with dropout")
    return attend(_heads(query, key, value, attn_mask, is_causal, _roots(query, scale)))


@handles("aten::_scaled_dot_product_flash_attention_for_cpu_backward")
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
    """Compute `aten::_scaled_dot_product_flash_attention_for_cpu_backward`, and the weights again."""
    del out, logsumexp
    if dropout_p:
        refuse("_scaled_dot_product_flash_attention_for_cpu_backward", "with dropout")
    roots = _roots(query, scale)
    heads = _heads(query, key, value, attn_mask, is_causal, roots)
    of_query, of_key, of_value = attend_backward(heads, grad_out)
    groups = query.shape[1] // key.shape[1]
    # Each head's gradient is scaled, then heads are added.
    return of_query.mul_(roots[0]), _grouped(of_key.mul_(roots[1]), groups), _grouped(of_value, groups)
