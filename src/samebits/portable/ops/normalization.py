"""Normalisation layers ("Normalisation")."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from samebits.portable.kernels import norms
from samebits.portable.kernels.elementwise import unary
from samebits.portable.kernels.reductions import mean_over, sum_over, sum_products_over, sum_squares_over
from samebits.portable.kernels.root import sqrt
from samebits.portable.ops import batch_norm
from samebits.portable.registry import LOW_PRECISION, rounds_itself

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from samebits.portable.registry import Handler, Table

    Mask = Sequence[bool]
    Gradients = tuple[Tensor | None, ...]


def layer_norm(
    input: Tensor,  # noqa: A002 - names of the schema
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`aten::native_layer_norm`."""
    leading = input.dim() - len(normalized_shape)
    if tuple(input.shape[leading:]) != tuple(normalized_shape):
        raise RuntimeError(f"Given normalized_shape={list(normalized_shape)}, but got input of size {list(input.shape)}")
    rows = math.prod(input.shape[:leading])
    out, mean, rstd = norms.layer_norm(_plain(input), _optional(weight), _optional(bias), rows, eps)
    shape = (*input.shape[:leading], *(1 for _ in normalized_shape))
    statistics_dtype = _statistics_dtype(input, weight)
    return out.to(input.dtype), mean.view(shape).to(statistics_dtype), rstd.view(shape).to(statistics_dtype)


def layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,  # noqa: A002
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Mask,
) -> Gradients:
    """`aten::native_layer_norm_backward`."""
    terms = (_plain(grad_out), _plain(input), _plain(mean), _plain(rstd))
    of_input = norms.layer_norm_gradient(*terms, _optional(weight)).to(input.dtype) if output_mask[0] else None
    if not (output_mask[1] or output_mask[2]):
        return of_input, None, None
    of_weight, of_bias = norms.layer_norm_weight_gradients(*terms)
    return (
        of_input,
        of_weight.view(tuple(normalized_shape)).to(_dtype(weight, input)) if output_mask[1] else None,
        of_bias.view(tuple(normalized_shape)).to(_dtype(bias, input)) if output_mask[2] else None,
    )


def group_norm(
    input: Tensor,  # noqa: A002
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,  # noqa: N803
    C: int,  # noqa: N803
    HxW: int,  # noqa: N803
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`aten::native_group_norm`."""
    x = _plain(input)
    each = C // group
    if not x.numel():
        nothing = x.new_zeros((N, group))
        return torch.empty_like(input), nothing, nothing.clone()
    mean, total = norms.statistics(x.view(N, group, each * HxW), [2])
    rstd = norms.reciprocal_deviation(total.div_(each * HxW), eps)
    factor = rstd.view(N, group, 1).expand(N, group, each).reshape(N, C)
    shift = x.new_zeros(C) if bias is None else _plain(bias)
    terms = (_for_channels(mean, each), factor if weight is None else factor * _plain(weight), shift.expand(N, C))
    out = norms.scale_channels(x.view(1, N * C, HxW), *(term.contiguous() for term in terms)).view(input.shape)
    statistics_dtype = _statistics_dtype(input, weight)
    return out.to(input.dtype), mean.to(statistics_dtype), rstd.to(statistics_dtype)


def group_norm_backward(
    grad_out: Tensor,
    input: Tensor,  # noqa: A002
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    N: int,  # noqa: N803
    C: int,  # noqa: N803
    HxW: int,  # noqa: N803
    group: int,
    output_mask: Mask,
) -> Gradients:
    """`aten::native_group_norm_backward`."""
    if not input.numel():
        zeros = input.new_zeros(C)
        return tuple(value if asked else None for value, asked in zip((input.clone(), zeros, zeros.clone()), output_mask, strict=True))
    x, gradient = _plain(input).view(N, C, HxW), _plain(grad_out).view(N, C, HxW)
    each = C // group
    mean_c, rstd_c = (_for_channels(_plain(term), each) for term in (mean, rstd))
    sums, crosses = norms.gradient_sums(gradient, x, mean_c, [2])
    of_input = None
    if output_mask[0]:
        w = x.new_ones(C) if weight is None else _plain(weight)
        grouped = w.view(group, each)
        shift, cross = (norms.weighted_sums(t.view(N, group, each), grouped).div_(each * HxW) for t in (sums, crosses))
        slope = cross * _plain(rstd) * _plain(rstd)
        terms = (mean_c, _for_channels(slope, each), w.expand(N, C), _for_channels(shift, each), rstd_c)
        flat = (term.contiguous() for term in terms)
        flat_shape = (1, N * C, HxW)
        of_input = norms.channels_gradient(gradient.view(flat_shape), x.view(flat_shape), tuple(flat))  # type: ignore[arg-type]
        of_input = of_input.view(input.shape).to(input.dtype)
    of_weight = sum_products_over(crosses, rstd_c, 0).to(_dtype(weight, input)) if output_mask[1] else None
    return of_input, of_weight, sum_over(sums, 0).to(_dtype(weight, input)) if output_mask[2] else None


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float | None  # noqa: A002
) -> tuple[Tensor, Tensor]:
    """`aten::_fused_rms_norm`: what torch's `rms_norm` consists of."""
    x = _plain(input)
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    rstd = unary("rsqrt", mean_over(x * x, dims, keepdim=True).add_(eps))
    out = x * rstd
    return (out if weight is None else out * _plain(weight)).to(input.dtype), rstd


def rms_norm_backward(
    grad_out: Tensor,
    input: Tensor,  # noqa: A002
    normalized_shape: Sequence[int],
    rstd: Tensor,
    weight: Tensor | None,
    output_mask: Mask,
) -> tuple[Tensor | None, Tensor | None]:
    """`aten::_fused_rms_norm_backward`."""
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


def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """`aten::_weight_norm_interface`: v · (g / norm), norms being over all dimensions but one."""
    norm = sqrt(sum_squares_over(v, _others(v, dim), keepdim=True))
    return v * (g / norm), norm


def weight_norm_backward(
    grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """`aten::_weight_norm_interface_backward`."""
    cross = sum_products_over(grad_w, saved_v, _others(saved_v, dim), keepdim=True)
    inner = grad_w - saved_v * (cross / (saved_norms * saved_norms))
    return (saved_g / saved_norms) * inner, cross / saved_norms


def _others(x: Tensor, dim: int) -> list[int]:
    return [d for d in range(x.dim()) if d != dim % x.dim()]


def _for_channels(x: Tensor, each: int) -> Tensor:
    """Values of groups (N, group), repeated for the channels of each."""
    return x.view(*x.shape, 1).expand(*x.shape, each).reshape(x.shape[0], x.shape[1] * each)


def _plain(x: Tensor) -> Tensor:
    return (x.to(torch.float32) if x.dtype in LOW_PRECISION else x).contiguous()


def _optional(x: Tensor | None) -> Tensor | None:
    return None if x is None else _plain(x)


def _dtype(parameter: Tensor | None, x: Tensor) -> torch.dtype:
    return x.dtype if parameter is None else parameter.dtype


def _statistics_dtype(x: Tensor, weight: Tensor | None) -> torch.dtype:
    """float32 where the weight is, beside an input of less; otherwise that of the input."""
    return _dtype(weight, x)


def table() -> Table:
    """The ops of this module."""
    mixed: dict[str, Handler] = {
        "_fused_rms_norm": rms_norm,
        "_fused_rms_norm_backward": rms_norm_backward,
        "native_group_norm": group_norm,
        "native_group_norm_backward": group_norm_backward,
        "native_layer_norm": layer_norm,
        "native_layer_norm_backward": layer_norm_backward,
        **batch_norm.table(),
    }
    return {
        **{name: rounds_itself(handler) for name, handler in mixed.items()},
        "_weight_norm_interface": weight_norm,
        "_weight_norm_interface_backward": weight_norm_backward,
    }
