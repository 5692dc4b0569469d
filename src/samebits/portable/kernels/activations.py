"""Activations, elementwise losses and scaled sums: a function of up to three inputs for each value."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch

from samebits.portable._refusals import refuse_use
from samebits.portable._tensors import is_real
from samebits.portable.backends import backend_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

NAMES = tuple(
    """
    softshrink hardshrink shrink_backward hardsigmoid hardsigmoid_backward hardswish hardswish_backward
    gelu gelu_backward gelu_tanh gelu_tanh_backward silu silu_backward mish mish_backward
    elu elu_backward elu_backward_of_result softplus softplus_backward
    log_sigmoid log_sigmoid_backward glu glu_backward_value glu_backward_gate
    add_scaled lerp addcmul addcdiv
    mse mse_backward smooth_l1 smooth_l1_backward huber huber_backward
    binary_cross_entropy binary_cross_entropy_backward with_logits with_logits_pos
    soft_margin soft_margin_backward
    """.split()  # noqa: SIM905 - a line for each family
)
"""In the order of native/portable/activation.h."""


def pointwise(name: str, *inputs: Tensor, params: Sequence[float] = ()) -> Tensor:
    """Compute one of `NAMES` for each element of the inputs, broadcast together.

    Args:
        name: of the function.
        inputs: one to three tensors, float32 or float64, all alike; any strides.
        params: up to four numbers, rounded to the dtype of the inputs.

    Returns:
        a new tensor, with the strides of the first input that has its shape, where they are dense.
    """
    first = inputs[0]
    shape, dims, aligned = first.shape, first.dim(), first.is_contiguous()
    for other in inputs[1:]:
        if other.shape != shape or not other.is_contiguous():
            aligned = aligned and other.numel() == 1 and other.dim() <= dims
    out, inputs = (torch.empty_like(first), inputs) if aligned else _aligned(inputs)
    return _write(name, out, inputs, params)


def pointwise_(name: str, *inputs: Tensor, params: Sequence[float] = ()) -> Tensor:
    """Compute the same over the first input, which the others broadcast to.

    Args:
        name: of the function.
        inputs: as for `pointwise`; the first may have another dtype than the others.
        params: as for `pointwise`.
    """
    first, *others = inputs
    if first.is_contiguous() and all(_can_be_read_along(first, other) for other in others):
        return _write(name, first, inputs, params)
    dtype = functools.reduce(torch.promote_types, (tensor.dtype for tensor in inputs))
    return first.copy_(pointwise(name, *(tensor.to(dtype) for tensor in inputs), params=params))


def _can_be_read_along(out: Tensor, other: Tensor) -> bool:
    """Tell whether the kernel can read it while it writes `out`: it lies exactly there, or elsewhere."""
    if other.dtype != out.dtype:
        return False
    same_shape = other.shape == out.shape and other.is_contiguous()
    start, first = out.data_ptr(), other.data_ptr()
    if first == start:
        return same_shape
    apart = first >= start + out.nbytes or first + other.nbytes <= start
    return apart and (same_shape or other.numel() == 1)


def _write(name: str, out: Tensor, inputs: tuple[Tensor, ...], params: Sequence[float]) -> Tensor:
    """Compute into `out`; the inputs have its strides or one element."""
    if not is_real(out, name):  # a kernel would take integers for floats
        raise refuse_use(name, f"of {out.dtype} tensors")
    if out.numel():
        backend_of(out).pointwise(name, inputs, params, out)
    return out


def _aligned(inputs: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return an output, and the inputs with its strides or of one element."""
    shape = common_shape(*(tensor.shape for tensor in inputs))
    model = next((tensor for tensor in inputs if tensor.shape == shape), None)
    first = inputs[0]
    if model is None:
        out = torch.empty(shape, dtype=first.dtype, device=first.device)
    else:
        out = torch.empty_like(model)
    return out, tuple(_like(tensor, out) for tensor in inputs)


def common_shape(*shapes: torch.Size) -> torch.Size:
    """Return the broadcast shape of all of these; torch's own function takes longer than a small op."""
    different = {shape for shape in shapes if shape}
    if len(different) < 2:
        return next(iter(different), shapes[0])
    shape: torch.Size = torch.broadcast_shapes(*different)  # type: ignore[no-untyped-call]
    return shape


def _like(tensor: Tensor, out: Tensor) -> Tensor:
    if tensor.numel() == 1 or (tensor.shape == out.shape and tensor.stride() == out.stride()):
        return tensor
    return torch.empty_like(out).copy_(tensor.expand(out.shape))
