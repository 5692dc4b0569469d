"""Activations ("Activations"). Those that only choose or scale are left to torch."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import declares_handlers, handles
from samebits.portable.kernels.activations import pointwise, pointwise_

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable._registry import Table


_NOISE_LEAST = 1e-6


@handles("aten::gelu")
def gelu(self: Tensor, *, approximate: str = "none") -> Tensor:
    """Compute `aten::gelu`."""
    return pointwise(_gelu_kind(approximate), self)


@handles("aten::gelu_backward")
def gelu_backward(grad_output: Tensor, self: Tensor, *, approximate: str = "none") -> Tensor:
    """Compute `aten::gelu_backward`."""
    return pointwise(_gelu_kind(approximate) + "_backward", grad_output, self)


def _gelu_kind(approximate: str) -> str:
    if approximate not in {"none", "tanh"}:
        raise RuntimeError("approximate argument must be either none or tanh.")
    return "gelu_tanh" if approximate == "tanh" else "gelu"


@handles("aten::elu")
def elu(self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """Compute `aten::elu`, which is also how torch computes `selu`."""
    return pointwise("elu", self, params=(alpha, scale, input_scale))


@handles("aten::elu_")
def elu_in_place(self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """Compute `aten::elu_`."""
    return pointwise_("elu", self, params=(alpha, scale, input_scale))


@handles("aten::celu")
def celu(self: Tensor, alpha: float = 1) -> Tensor:
    """Compute `aten::celu`: `elu` with an input scale of 1 / alpha."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return elu(self, alpha, 1, 1 / alpha)


@handles("aten::elu_backward")
def elu_backward(
    grad_output: Tensor,
    alpha: float,
    scale: float,
    input_scale: float,
    is_result: bool,
    self_or_result: Tensor,
) -> Tensor:
    """Compute `aten::elu_backward`."""
    name = "elu_backward_of_result" if is_result else "elu_backward"
    return pointwise(name, grad_output, self_or_result, params=(alpha, scale, input_scale))


@handles("aten::softplus")
def softplus(self: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """Compute `aten::softplus`."""
    return pointwise("softplus", self, params=(beta, threshold))


@handles("aten::softplus_backward")
def softplus_backward(grad_output: Tensor, self: Tensor, beta: float, threshold: float) -> Tensor:
    """Compute `aten::softplus_backward`."""
    return pointwise("softplus_backward", grad_output, self, params=(beta, threshold))


@handles("aten::softshrink")
def softshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    """Compute `aten::softshrink`."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return pointwise("softshrink", self, params=(lambd,))


@handles("aten::hardshrink")
def hardshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    """Compute `aten::hardshrink`."""
    return pointwise("hardshrink", self, params=(lambd,))


@handles("aten::softshrink_backward")
def softshrink_backward(grad_output: Tensor, self: Tensor, lambd: float) -> Tensor:
    """Compute `aten::softshrink_backward`."""
    return pointwise("shrink_backward", grad_output, self, params=(lambd,))


@handles("aten::hardshrink_backward")
def hardshrink_backward(grad_out: Tensor, self: Tensor, lambd: float) -> Tensor:
    """Compute `aten::hardshrink_backward`."""
    return pointwise("shrink_backward", grad_out, self, params=(lambd,))


@handles("aten::log_sigmoid_forward")
def log_sigmoid_forward(self: Tensor) -> tuple[Tensor, Tensor]:
    """Compute `aten::log_sigmoid_forward`, with an empty buffer: the gradient needs the input alone."""
    return pointwise("log_sigmoid", self), self.new_empty(0)


@handles("aten::log_sigmoid_backward")
def log_sigmoid_backward(grad_output: Tensor, self: Tensor, buffer: Tensor) -> Tensor:
    """Compute `aten::log_sigmoid_backward`."""
    return pointwise("log_sigmoid_backward", grad_output, self)


@handles("aten::glu")
def glu(self: Tensor, dim: int = -1) -> Tensor:
    """Compute `aten::glu`: the first half times the sigmoid of the second one."""
    return pointwise("glu", *_halves(self, dim))


@handles("aten::glu_backward")
def glu_backward(grad_output: Tensor, self: Tensor, dim: int) -> Tensor:
    """Compute `aten::glu_backward`."""
    value, gate = _halves(self, dim)
    parts = [pointwise(f"glu_backward_{part}", grad_output, value, gate) for part in ("value", "gate")]
    return torch.cat(parts, dim)


def _halves(tensor: Tensor, dim: int) -> tuple[Tensor, ...]:
    if not tensor.dim():
        raise RuntimeError("glu does not support 0-dimensional tensors")
    size = tensor.size(dim)
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    return torch.split(tensor, size // 2, dim) if size else (tensor, tensor)


@handles("aten::_prelu_kernel_backward")
def prelu_kernel_backward(grad_output: Tensor, self: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Compute `aten::_prelu_kernel_backward`: the weight's gradient has a value for each input."""
    above, nothing = self > 0, torch.zeros((), dtype=self.dtype, device=self.device)
    return (
        torch.where(above, grad_output, torch.mul(weight, grad_output)),
        torch.where(above, nothing, torch.mul(self, grad_output)),
    )


@handles("aten::rrelu_with_noise_backward")
def rrelu_with_noise_backward(
    grad_output: Tensor,
    self: Tensor,
    noise: Tensor,
    lower: float,
    upper: float,
    training: bool,
    self_is_result: bool,
) -> Tensor:
    """Compute `aten::rrelu_with_noise_backward`; the noise is the slopes that were drawn."""
    if training and upper - lower > _NOISE_LEAST:
        return torch.mul(noise, grad_output)
    slope = (lower + upper) / 2
    out: Tensor = torch.ops.aten.leaky_relu_backward(grad_output, self, slope, self_is_result)
    return out


@declares_handlers
def _of_one_input() -> Table:
    names = ("silu", "mish", "hardsigmoid", "hardswish")
    return {
        **{f"aten::{name}": functools.partial(pointwise, name) for name in names},
        **{f"aten::{name}_": functools.partial(pointwise_, name) for name in names},
        **{f"aten::{name}_backward": functools.partial(pointwise, f"{name}_backward") for name in names},
    }
