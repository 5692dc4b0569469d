"""Fake quantization, for training ("Fake quantization" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles, rounds_itself
from samebits.portable._tensors import raised
from samebits.portable.kernels.reductions import sum_over

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class _Grid:
    """The numbers that elements are rounded to.

    Args:
        scale: between two of them, float32; of a shape that broadcasts with the elements.
        zero: the integer that stands for 0, likewise.
        low, high: the least and the greatest integer.
    """

    scale: Tensor
    zero: Tensor
    low: int
    high: int

    def inverse(self) -> Tensor:
        """Return 1 / scale."""
        return 1.0 / self.scale

    def integers(self, x: Tensor) -> Tensor:
        """Return the integer of each element as a float, not yet kept between `low` and `high`."""
        scaled = x * self.inverse()
        if self.zero.is_floating_point():  # torch then adds before it rounds
            return (scaled + self.zero).round()
        return scaled.round() + self.zero

    def is_within(self, integers: Tensor) -> Tensor:
        """Tell where integers are between `low` and `high`; NaN is not."""
        return (integers >= self.low) & (integers <= self.high)

    def values(self, integers: Tensor) -> Tensor:
        """Return what the integers stand for, once they are between `low` and `high`; NaN is `low`."""
        kept = torch.where(integers >= self.low, integers, self.low)
        kept = torch.where(kept > self.high, self.high, kept)
        return (kept - self.zero) * self.scale


def _fake(x: Tensor, grid: _Grid) -> tuple[Tensor, Tensor]:
    integers = grid.integers(raised(x))
    return grid.values(integers).to(x.dtype), grid.is_within(integers)


def _number(value: float | Tensor, like: Tensor) -> Tensor:
    return torch.as_tensor(value, device=like.device).reshape(-1)[:1].to(torch.float32).reshape(())


def _along(values: Tensor, x: Tensor, axis: int) -> Tensor:
    """Return a value for each channel so that it broadcasts with x."""
    return values.reshape([-1 if d == axis % x.dim() else 1 for d in range(x.dim())])


@handles("aten::fake_quantize_per_tensor_affine_cachemask")
@rounds_itself
def per_tensor(
    self: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """Compute `aten::fake_quantize_per_tensor_affine_cachemask`: the values, and which are in range."""
    zero = torch.tensor(zero_point, device=self.device)
    return _fake(self, _Grid(_number(scale, self), zero, quant_min, quant_max))


@handles("aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
@rounds_itself
def per_tensor_of_tensors(
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    fake_quant_enabled: Tensor,
    quant_min: int,
    quant_max: int,
) -> tuple[Tensor, Tensor]:
    """Compute `aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams`."""
    if not bool(fake_quant_enabled.reshape(-1)[0]):
        return self.clone(), torch.ones_like(self, dtype=torch.bool)
    zero = zero_point.reshape(-1)[0].to(torch.int64)
    return _fake(self, _Grid(_number(scale, self), zero, quant_min, quant_max))


@handles("aten::fake_quantize_per_channel_affine_cachemask")
@rounds_itself
def per_channel(
    self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """Compute `aten::fake_quantize_per_channel_affine_cachemask`."""
    scales = _along(scale.to(torch.float32), self, axis)
    return _fake(self, _Grid(scales, _along(zero_point, self, axis), quant_min, quant_max))


@handles("aten::_fake_quantize_learnable_per_tensor_affine")
@rounds_itself
def learnable_per_tensor(
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:
    """Compute `aten::_fake_quantize_learnable_per_tensor_affine`: the zero point is rounded first."""
    del grad_factor
    zero = _rounded(_number(zero_point, self), quant_min, quant_max)
    return _fake(self, _Grid(_number(scale, self), zero, quant_min, quant_max))[0]


@handles("aten::_fake_quantize_learnable_per_channel_affine")
@rounds_itself
def learnable_per_channel(
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:
    """Compute `aten::_fake_quantize_learnable_per_channel_affine`."""
    del grad_factor
    return _fake(self, _grid_of_channels(self, (scale, zero_point), axis, (quant_min, quant_max)))[0]


@handles("aten::_fake_quantize_learnable_per_tensor_affine_backward")
@rounds_itself
def learnable_per_tensor_backward(
    grad: Tensor,
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `aten::_fake_quantize_learnable_per_tensor_affine_backward`; torch rounds halves up here."""
    zero = (_number(zero_point, self) + 0.5).clamp(quant_min, quant_max).to(torch.int64)
    grid = _Grid(_number(scale, self), zero, quant_min, quant_max)
    of_x, of_scale, of_zero = _gradients(grad, self, grid, grad_factor)
    sums = (sum_over(of_scale, None), sum_over(of_zero, None))
    return of_x, sums[0].reshape(1).to(scale.dtype), sums[1].reshape(1).to(zero_point.dtype)


@handles("aten::_fake_quantize_learnable_per_channel_affine_backward")
@rounds_itself
def learnable_per_channel_backward(
    grad: Tensor,
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `aten::_fake_quantize_learnable_per_channel_affine_backward`."""
    grid = _grid_of_channels(self, (scale, zero_point), axis, (quant_min, quant_max))
    of_x, of_scale, of_zero = _gradients(grad, self, grid, grad_factor)
    others = [d for d in range(self.dim()) if d != axis % self.dim()]
    if others:
        of_scale, of_zero = sum_over(of_scale, others), sum_over(of_zero, others)
    return of_x, of_scale.to(scale.dtype), of_zero.to(zero_point.dtype)


def _rounded(zero: Tensor, low: int, high: int) -> Tensor:
    return zero.round().clamp(low, high).to(torch.int64)


def _grid_of_channels(x: Tensor, pair: tuple[Tensor, Tensor], axis: int, ends: tuple[int, int]) -> _Grid:
    """Return the grids of all channels.

    Args:
        x: the elements.
        pair: scales and zero points.
        axis: of the channels.
        ends: the least and the greatest integer.
    """
    zero = _rounded(pair[1].to(torch.float32), *ends)
    return _Grid(_along(pair[0].to(torch.float32), x, axis), _along(zero, x, axis), *ends)


def _gradients(grad: Tensor, x: Tensor, grid: _Grid, factor: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of each element: of itself, of its scale and of its zero point."""
    dtype, grad, x = grad.dtype, raised(grad), raised(x)
    integers = grid.integers(x)
    within = grid.is_within(integers)
    end = torch.where(integers < grid.low, grid.low - grid.zero, grid.high - grid.zero)
    inner = (grad * (grid.values(integers) - x)) * grid.inverse()
    of_scale = torch.where(within, inner, grad * end) * factor
    of_zero = torch.where(within, 0.0, (grad * -1.0) * grid.scale) * factor
    return torch.where(within, grad, 0.0).to(dtype), of_scale.to(x.dtype), of_zero.to(x.dtype)
