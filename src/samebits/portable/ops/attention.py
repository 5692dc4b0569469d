"""Attention and softmax."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from samebits.portable._refusals import refuse_use
from samebits.portable._registry import handles
from samebits.portable.kernels.attention import Heads, attend, attend_backward, softmax_gradient
from samebits.portable.kernels.attention import softmax as softmax_kernel
from samebits.portable.kernels.elementwise import unary
from samebits.portable.kernels.reductions import accumulate_, axes, sum_over

if TYPE_CHECKING:
    from collections.abc import Sequence

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
            shown = torch.zeros((), dtype=query.dtype, device=query.device)
            mask = torch.where(mask, shown, -torch.inf)
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
    head = torch.arange(count, device=grad.device) // groups
    index = head[None, :, None].expand(batch, count, keys * size)
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
        raise refuse_use("_scaled_dot_product_flash_attention_for_cpu", "with dropout")
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
        raise refuse_use("_scaled_dot_product_flash_attention_for_cpu_backward", "with dropout")
    roots = _roots(query, scale)
    heads = _heads(query, key, value, attn_mask, is_causal, roots)
    of_query, of_key, of_value = attend_backward(heads, grad_out)
    groups = query.shape[1] // key.shape[1]
    # Each head's gradient is scaled, then heads are added.
    return of_query.mul_(roots[0]), _grouped(of_key.mul_(roots[1]), groups), _grouped(of_value, groups)


@handles("aten::_softmax")
def softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Compute `aten::_softmax`."""
    _check_half(half_to_float)
    return softmax_kernel(self, dim)


@handles("aten::_log_softmax")
def log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Compute `aten::_log_softmax`."""
    _check_half(half_to_float)
    return softmax_kernel(self, dim, log=True)


@handles("aten::_softmax_backward_data")
def softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype) -> Tensor:
    """Compute `aten::_softmax_backward_data`."""
    return softmax_gradient(grad_output, output, dim)


@handles("aten::_log_softmax_backward_data")
def log_softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype) -> Tensor:
    """Compute `aten::_log_softmax_backward_data`."""
    return softmax_gradient(grad_output, output, dim, log=True)


@handles("aten::_safe_softmax")
def safe_softmax(self: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Compute `aten::_safe_softmax`: 0 where all inputs are -inf."""
    self = self if dtype is None else self.to(dtype)
    nothing = (self == -math.inf).all(dim, keepdim=True)
    return torch.where(nothing, 0.0, softmax_kernel(self, dim))


@handles("aten::_masked_softmax")
def masked_softmax(
    self: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None
) -> Tensor:
    """Compute `aten::_masked_softmax`: the input is -inf where the mask is True; 0 where all is masked."""
    mask = _full_mask(mask, self, mask_type)
    dim = self.dim() - 1 if dim is None else dim
    return torch.where(mask, 0.0, safe_softmax(torch.where(mask, -math.inf, self), dim))


@handles("aten::_masked_softmax_backward")
def masked_softmax_backward(
    grad_output: Tensor, output: Tensor, mask: Tensor, dim: int | None = None
) -> Tensor:
    """Compute `aten::_masked_softmax_backward`: 0 where the mask is True."""
    mask = mask.expand_as(output)
    dim = output.dim() - 1 if dim is None else dim
    gradient = torch.where(mask, 0.0, grad_output)
    return torch.where(mask, 0.0, softmax_gradient(gradient, torch.where(mask, 0.0, output), dim))


@handles("aten::logsumexp")
def logsumexp(self: Tensor, dim: Sequence[int], keepdim: bool = False) -> Tensor:
    """Compute `aten::logsumexp`: m + log(sum of exp(x - m)); m is the greatest value, or +0 if infinite."""
    if not self.is_floating_point():
        self = self.to(torch.get_default_dtype())
    dims = axes(self.dim(), dim)
    if not self.numel():
        return unary("log", sum_over(self, dims, keepdim))
    most = torch.amax(self, dims, keepdim=True) + 0
    most = torch.where(most.abs() == math.inf, 0.0, most)
    total = sum_over(unary("exp", self - most), dims, keepdim)
    if not keepdim:
        most = most.view(total.shape)
    return unary("log", total) + most


def _check_half(half_to_float: bool) -> None:
    if half_to_float:
        raise RuntimeError("softmax with half to float conversion is not supported on CPU")


def _full_mask(mask: Tensor, x: Tensor, mask_type: int | None) -> Tensor:
    """Expand the mask, (queries, keys) or (batch, keys), to the shape of x: (batch, heads, queries, keys)."""
    if mask_type == 0 and mask.dim() == 2:
        return mask.view(1, 1, *mask.shape).expand_as(x)
    if mask_type == 1 and mask.dim() == 2 and x.dim() == 4:
        return mask.view(x.shape[0], 1, 1, x.shape[-1]).expand_as(x)
    return mask.expand_as(x)
