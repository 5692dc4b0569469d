"""Interpolation and padding."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from samebits.portable._refusals import refuse_use
from samebits.portable._registry import declares_handlers, handles
from samebits.portable._tensors import as_tensor, is_real
from samebits.portable.kernels.reductions import accumulate_
from samebits.portable.kernels.taps import interpolation_taps, scale_of
from samebits.portable.ops.accumulation import index_add

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable._registry import Handler, Table

Sizes = Sequence[int]
Taps = tuple[torch.Tensor, torch.Tensor]
"""(outputs, taps): which inputs make an output, and with what weights."""


@functools.lru_cache(maxsize=256)
def _taps(
    kind: str, side: tuple[int, int], align: bool, scale: float | None, is_f64: bool, device: torch.device
) -> Taps:
    """Return the taps along one dimension: `side` is its size and the number of outputs."""
    real = np.float64 if is_f64 else np.float32
    index, weight = interpolation_taps(kind, *side, align=align, scale=scale, real=real)
    return as_tensor(index).to(device), as_tensor(weight).to(device)


def _along(x: Tensor, dim: int, taps: Taps) -> Tensor:
    index, weight = taps
    shape = [1] * x.dim()
    shape[dim] = -1
    out = x.index_select(dim, index[:, 0]) * weight[:, 0].reshape(shape)
    for tap in range(1, index.shape[1]):
        out = out + x.index_select(dim, index[:, tap]) * weight[:, tap].reshape(shape)
    return out


def _back_along(grad: Tensor, dim: int, taps: Taps, size: int) -> Tensor:
    index, weight = taps
    shape = [1] * (grad.dim() + 1)
    shape[dim], shape[dim + 1] = weight.shape
    shares = grad.unsqueeze(dim + 1) * weight.reshape(shape)
    sizes = list(grad.shape)
    sizes[dim] = size
    return index_add(grad.new_zeros(sizes), dim, index.reshape(-1), shares.flatten(dim, dim + 1))


def _all_taps(
    kind: str, sizes: Sizes, outputs: Sizes, how: tuple[bool, Sequence[float | None]], like: Tensor
) -> list[Taps]:
    align, scales = how
    scales = [*scales, *[None] * (len(sizes) - len(scales))]
    is_f64, device = like.dtype == torch.float64, like.device
    return [
        _taps(kind, (size, count), align, scale, is_f64, device)
        for size, count, scale in zip(sizes, outputs, scales, strict=True)
    ]


def _make(
    name: str, kind: str, n: int
) -> tuple[Callable[..., Tensor], Callable[..., Tensor], Callable[..., Tensor]]:
    def upsample(
        self: Tensor, output_size: Sizes, align_corners: bool, *scales: float | None, **named: float | None
    ) -> Tensor:
        if not is_real(self, name):  # torch rounds to bytes, with other weights on other instruction sets
            raise refuse_use(name, f"of {self.dtype} tensors")
        how = align_corners, [*scales, *named.values()]
        every = _all_taps(kind, self.shape[-n:], output_size, how, self)
        out = self
        for dim in reversed(range(n)):
            out = _along(out, out.dim() - n + dim, every[dim])
        return out.contiguous()

    def backward(
        grad_output: Tensor,
        output_size: Sizes,
        input_size: Sizes,
        align_corners: bool,
        *scales: float | None,
        **named: float | None,
    ) -> Tensor:
        sizes = input_size[-n:]
        how = align_corners, [*scales, *named.values()]
        every = _all_taps(kind, sizes, output_size, how, grad_output)
        grad = grad_output
        for dim in range(n):
            grad = _back_along(grad, grad.dim() - n + dim, every[dim], sizes[dim])
        return grad

    def by_factors(
        input: Tensor, output_size: Sizes | None, align_corners: bool, scale_factors: Sequence[float] | None
    ) -> Tensor:
        sizes = input.shape[-n:]
        factors = list(scale_factors or [])
        outputs = output_size or [int(size * factor) for size, factor in zip(sizes, factors, strict=True)]
        return upsample(input, outputs, align_corners, *factors)

    return upsample, backward, by_factors


def _nearest_index(
    size: int, outputs: int, scale: float | None, shift: float, device: torch.device
) -> Tensor:
    real = np.float32
    at = np.arange(outputs).astype(real) + real(shift)
    index = np.floor(at * scale_of(size, outputs, align=False, scale=scale, real=real)).astype(np.int64)
    if outputs in (size, 2 * size) and not shift:
        index = np.arange(outputs) * size // outputs
    return as_tensor(np.minimum(index, size - 1)).to(device)


def spread_planes(grad: Tensor, indices: list[Tensor], sizes: Sizes) -> Tensor:
    """Return the gradient of planes, of which each output position is one input position.

    Args:
        grad: (..., outputs of each dimension).
        indices: for each dimension the input position of each output position.
        sizes: of the input, all dimensions.
    """
    n = len(indices)
    flat = torch.zeros((), dtype=torch.int64, device=grad.device)
    for index, size in zip(indices, sizes[-n:], strict=True):
        flat = flat[..., None] * size + index
    planes, inside = torch.Size(sizes[:-n]).numel(), torch.Size(sizes[-n:]).numel()
    out = torch.zeros((planes, inside, 1), dtype=grad.dtype, device=grad.device)
    if grad.numel():
        accumulate_(out, flat.reshape(1, -1, 1).expand(planes, -1, 1), grad.reshape(planes, -1, 1))
    return out.reshape(tuple(sizes))


def _make_nearest_backward(n: int, shift: float) -> Callable[..., Tensor]:
    def backward(
        grad_output: Tensor,
        output_size: Sizes,
        input_size: Sizes,
        *scales: float | None,
        **named: float | None,
    ) -> Tensor:
        factors = [*scales, *named.values()]
        factors += [None] * (n - len(factors))
        sides = zip(input_size[-n:], output_size, factors, strict=True)
        indices = [_nearest_index(*side, shift, grad_output.device) for side in sides]
        return spread_planes(grad_output, indices, input_size)

    return backward


@declares_handlers
def _upsampling() -> Table:
    handlers: dict[str, Handler] = {}
    kinds = {
        "aten::upsample_linear1d": ("linear", 1),
        "aten::upsample_bilinear2d": ("linear", 2),
        "aten::upsample_trilinear3d": ("linear", 3),
        "aten::upsample_bicubic2d": ("cubic", 2),
        "aten::_upsample_bilinear2d_aa": ("linear_aa", 2),
        "aten::_upsample_bicubic2d_aa": ("cubic_aa", 2),
    }
    for name, (kind, n) in kinds.items():
        handlers[name], handlers[f"{name}_backward"], handlers[f"{name}.vec"] = _make(
            name.removeprefix("aten::"), kind, n
        )
    for n in (1, 2, 3):
        handlers[f"aten::upsample_nearest{n}d_backward"] = _make_nearest_backward(n, 0.0)
        handlers[f"aten::_upsample_nearest_exact{n}d_backward"] = _make_nearest_backward(n, 0.5)
    return handlers


def _reflected(size: int, before: int, after: int, device: torch.device) -> Tensor:
    at = (torch.arange(size + before + after, device=device) - before).abs()
    return torch.where(at >= size, 2 * (size - 1) - at, at)


def _replicated(size: int, before: int, after: int, device: torch.device) -> Tensor:
    return (torch.arange(size + before + after, device=device) - before).clamp(0, size - 1)


def _make_padding_gradient(
    n: int, index: Callable[[int, int, int, torch.device], Tensor]
) -> Callable[..., Tensor]:
    def backward(grad_output: Tensor, self: Tensor, padding: Sequence[int]) -> Tensor:
        pairs = [padding[2 * d : 2 * d + 2] for d in range(n)][::-1]
        sides = zip(self.shape[-n:], pairs, strict=True)
        device = grad_output.device
        indices = [index(size, before, after, device) for size, (before, after) in sides]
        return spread_planes(grad_output, indices, self.shape)

    return backward


@handles("aten::_pack_padded_sequence")
def pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """Compute `aten::_pack_padded_sequence`: at each step the sequences that reach it; only moves data.

    The lengths are in CPU memory, as are the numbers of sequences that are returned.
    """
    steps = input.transpose(0, 1) if batch_first else input
    if bool((lengths[1:] > lengths[:-1]).any()) or bool((lengths <= 0).any()):
        raise RuntimeError("lengths of packed sequences must be positive and in descending order")
    sizes = [int((lengths > step).sum()) for step in range(int(lengths[0]))]
    data = torch.cat([steps[step, :size] for step, size in enumerate(sizes)])
    return data, torch.tensor(sizes, dtype=torch.int64, device="cpu")


@declares_handlers
def _gradients() -> Table:
    dimensions = (1, 2, 3)
    return {
        **{f"aten::reflection_pad{n}d_backward": _make_padding_gradient(n, _reflected) for n in dimensions},
        **{f"aten::replication_pad{n}d_backward": _make_padding_gradient(n, _replicated) for n in dimensions},
    }
