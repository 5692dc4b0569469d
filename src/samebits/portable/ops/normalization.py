"""Normalisation layers ("Normalisation")."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles, rounds_itself
from samebits.portable._tensors import as_dtype, raised
from samebits.portable.kernels import norms
from samebits.portable.kernels.elementwise import sqrt, unary
from samebits.portable.kernels.reductions import mean_over, sum_products_over, sum_squares_over

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    Mask = Sequence[bool]
    Gradients = tuple[Tensor | None, ...]


@handles("aten::native_layer_norm")
@rounds_itself
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `aten::native_layer_norm`."""
    leading = input.dim() - len(normalized_shape)
    if tuple(input.shape[leading:]) != tuple(normalized_shape):
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, but got input of size {list(input.shape)}"
        )
    rows = math.prod(input.shape[:leading])
    out, mean, rstd = norms.layer_norm(_plain(input), _optional(weight), _optional(bias), rows, eps)
    shape = (*input.shape[:leading], *(1 for _ in normalized_shape))
    statistics_dtype = _dtype(weight, input)
    mean, rstd = (as_dtype(t.view(shape), statistics_dtype) for t in (mean, rstd))
    return as_dtype(out, input.dtype), mean, rstd


@handles("aten::native_layer_norm_backward")
@rounds_itself
def layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Mask,
) -> Gradients:
    """Compute `aten::native_layer_norm_backward`."""
    terms = (_plain(grad_out), _plain(input), _plain(mean), _plain(rstd))
    of_input = None
    if output_mask[0]:
        of_input = as_dtype(norms.layer_norm_gradient(*terms, _optional(weight)), input.dtype)
    if not (output_mask[1] or output_mask[2]):
        return of_input, None, None
    of_weight, of_bias = norms.layer_norm_weight_gradients(*terms)
    shape = tuple(normalized_shape)
    return (
        of_input,
        as_dtype(of_weight.view(shape), _dtype(weight, input)) if output_mask[1] else None,
        as_dtype(of_bias.view(shape), _dtype(bias, input)) if output_mask[2] else None,
    )


@handles("aten::native_group_norm")
@rounds_itself
def group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `aten::native_group_norm`."""
    if not input.numel():
        nothing = input.new_zeros((N, group))
        return torch.empty_like(input), nothing, nothing.clone()
    x = _plain(input).view(N, C, HxW)
    out, mean, rstd = norms.group_norm(x, _optional(weight), _optional(bias), group, eps)
    statistics_dtype = _dtype(weight, input)
    mean, rstd = (as_dtype(t, statistics_dtype) for t in (mean, rstd))
    return as_dtype(out.view(input.shape), input.dtype), mean, rstd


@handles("aten::native_group_norm_backward")
@rounds_itself
def group_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: Mask,
) -> Gradients:
    """Compute `aten::native_group_norm_backward`."""
    if not input.numel():
        zeros = input.new_zeros(C)
        return tuple(
            value if asked else None
            for value, asked in zip((input.clone(), zeros, zeros.clone()), output_mask, strict=True)
        )
    x, gradient = _plain(input).view(N, C, HxW), _plain(grad_out).view(N, C, HxW)
    of_input, of_weight, of_bias = norms.group_norm_gradient(
        gradient, x, _plain(mean), _plain(rstd), _optional(weight)
    )
    dtype = _dtype(weight, input)
    return (
        as_dtype(of_input.view(input.shape), input.dtype) if output_mask[0] else None,
        as_dtype(of_weight, dtype) if output_mask[1] else None,
        as_dtype(of_bias, dtype) if output_mask[2] else None,
    )


@handles("aten::_fused_rms_norm")
@rounds_itself
def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    eps: float | None,
) -> tuple[Tensor, Tensor]:
    """Compute `aten::_fused_rms_norm` by the ops that torch's `rms_norm` consists of."""
    x = _plain(input)
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    rstd = unary("rsqrt", mean_over(x * x, dims, keepdim=True).add_(eps))
    out = x * rstd
    return (out if weight is None else out * _plain(weight)).to(input.dtype), rstd


@handles("aten::_fused_rms_norm_backward")
@rounds_itself
def rms_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    rstd: Tensor,
    weight: Tensor | None,
    output_mask: Mask,
) -> tuple[Tensor | None, Tensor | None]:
    """Compute `aten::_fused_rms_norm_backward`."""
    x, gradient, rstd = _plain(input), _plain(grad_out), _plain(rstd)
    leading = x.dim() - len(normalized_shape)
    normal = x * rstd
    scaled = gradient if weight is None else gradient * _plain(weight)
    cross = sum_products_over(scaled, normal, list(range(leading, x.dim())), keepdim=True)
    cross.div_(math.prod(normalized_shape))
    of_input = ((scaled - normal * cross) * rstd).to(input.dtype) if output_mask[0] else None
    if not output_mask[1]:
        return of_input, None
    flat = (-1, *normalized_shape)
    return of_input, sum_products_over(gradient.view(flat), normal.view(flat), 0).to(_dtype(weight, input))


@handles("aten::_weight_norm_interface")
def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """Compute `aten::_weight_norm_interface`: v · (g / norm), with norms over all dimensions but one."""
    norm = sqrt(sum_squares_over(v, _others(v, dim), keepdim=True))
    return v * (g / norm), norm


@handles("aten::_weight_norm_interface_backward")
def weight_norm_backward(
    grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """Compute `aten::_weight_norm_interface_backward`."""
    cross = sum_products_over(grad_w, saved_v, _others(saved_v, dim), keepdim=True)
    inner = grad_w - saved_v * (cross / (saved_norms * saved_norms))
    return (saved_g / saved_norms) * inner, cross / saved_norms


def _others(x: Tensor, dim: int) -> list[int]:
    return [d for d in range(x.dim()) if d != dim % x.dim()]


def _plain(x: Tensor) -> Tensor:
    return raised(x).contiguous()


def _optional(x: Tensor | None) -> Tensor | None:
    return None if x is None else _plain(x)


def _dtype(parameter: Tensor | None, x: Tensor) -> torch.dtype:
    """Return the dtype of a parameter, or of x where there is none."""
    return x.dtype if parameter is None else parameter.dtype
