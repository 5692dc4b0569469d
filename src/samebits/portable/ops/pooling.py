"""Pooling: means over windows, and the gradients of means and of largest values."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from samebits.portable._refusals import refuse_use
from samebits.portable._registry import declares_handlers, handles
from samebits.portable._tensors import REAL
from samebits.portable.kernels.reductions import Windows, accumulate_, window_mean, window_spread

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable._registry import Table

Sizes = Sequence[int]


@functools.lru_cache(maxsize=1024)
def _windows(
    size: int, kernel: int, stride: int, pad: int, how: tuple[bool, bool], device: torch.device
) -> Windows:
    ceil, with_pad = how
    outputs = (size + 2 * pad - kernel + (stride - 1 if ceil else 0)) // stride + 1
    if ceil and (outputs - 1) * stride >= size + pad:
        outputs -= 1
    starts = [o * stride - pad for o in range(outputs)]
    ends = [min(start + kernel, size + pad) for start in starts]
    inside = [(max(start, 0), min(end, size)) for start, end in zip(starts, ends, strict=True)]
    spans = zip(starts, ends, strict=True) if with_pad else inside
    return _to_windows(size, inside, [end - start for start, end in spans], device)


@functools.lru_cache(maxsize=1024)
def _adaptive(size: int, outputs: int, device: torch.device) -> Windows:
    inside = [(o * size // outputs, -(-(o + 1) * size // outputs)) for o in range(outputs)]
    return _to_windows(size, inside, [end - start for start, end in inside], device)


def _to_windows(size: int, inside: list[tuple[int, int]], counts: list[int], device: torch.device) -> Windows:
    first, end = ([bounds[i] for bounds in inside] for i in (0, 1))
    columns = (first, end, [max(1, c) for c in counts])
    return Windows(size, *(torch.tensor(values, dtype=torch.int64, device=device) for values in columns))


def _all(values: Sizes | int, dims: int) -> list[int]:
    values = [values] if isinstance(values, int) else list(values)
    return values * dims if len(values) == 1 else values


def _pool_dims(
    self: Tensor, kernel: Sizes, stride: Sizes, padding: Sizes, how: tuple[bool, bool]
) -> tuple[Windows, ...]:
    n = len(kernel)
    sides = zip(self.shape[-n:], kernel, _all(stride or kernel, n), _all(padding, n), strict=True)
    dims = tuple(_windows(size, k, s, p, how, self.device) for size, k, s, p in sides)
    if any(d.first.numel() < 1 for d in dims):
        raise RuntimeError(
            f"pooling of {tuple(self.shape)} with kernel {tuple(kernel)}: the output would be empty"
        )
    return dims


def _three(dims: tuple[Windows, ...]) -> tuple[Windows, ...]:
    return (_adaptive(1, 1, dims[0].first.device),) * (3 - len(dims)) + dims


def _mean(self: Tensor, dims: tuple[Windows, ...], divisor: int | None) -> Tensor:
    if self.dtype not in REAL:
        raise refuse_use("avg_pool", f"of {self.dtype} tensors")
    leading = self.shape[: self.dim() - len(dims)]
    three = _three(dims)
    planes = self.reshape(leading.numel(), *(d.size for d in three)).contiguous()
    return window_mean(planes, three, divisor or 0).reshape(*leading, *(d.first.numel() for d in dims))


def _spread(grad: Tensor, self: Tensor, dims: tuple[Windows, ...], divisor: int | None) -> Tensor:
    three = _three(dims)
    leading = self.shape[: self.dim() - len(dims)].numel()
    narrow = grad.reshape(leading, *(d.first.numel() for d in three)).contiguous()
    return window_spread(narrow, three, divisor or 0).reshape(self.shape)


def _make_avg_pool(n: int) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    def avg_pool(
        self: Tensor,
        kernel_size: Sizes,
        stride: Sizes = (),
        padding: Sizes | int = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        kernel, pads = _all(kernel_size, n), _all(padding, n)
        dims = _pool_dims(self, kernel, stride, pads, (ceil_mode, count_include_pad))
        return _mean(self, dims, divisor_override)

    def avg_pool_backward(
        grad_output: Tensor,
        self: Tensor,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Tensor:
        """Compute `aten::avg_pool2d_backward`, `aten::avg_pool3d_backward`."""
        kernel, pads = _all(kernel_size, n), _all(padding, n)
        dims = _pool_dims(self, kernel, stride, pads, (ceil_mode, count_include_pad))
        return _spread(grad_output, self, dims, divisor_override)

    return avg_pool, avg_pool_backward


def _make_adaptive(n: int) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    def adaptive_avg_pool(self: Tensor, output_size: Sizes) -> Tensor:
        pairs = zip(self.shape[-n:], _all(output_size, n), strict=True)
        dims = tuple(_adaptive(*pair, self.device) for pair in pairs)
        return _mean(self, dims, None)

    def adaptive_avg_pool_backward(grad_output: Tensor, self: Tensor) -> Tensor:
        pairs = zip(self.shape[-n:], grad_output.shape[-n:], strict=True)
        dims = tuple(_adaptive(*pair, self.device) for pair in pairs)
        return _spread(grad_output, self, dims, None)

    return adaptive_avg_pool, adaptive_avg_pool_backward


def _into_planes(values: Tensor, indices: Tensor, shape: torch.Size, n: int, kind: str) -> Tensor:
    """Return planes that take in values at the flat indices of their planes."""
    planes = shape[: len(shape) - n].numel()
    places = shape[len(shape) - n :].numel()
    out = torch.zeros((planes, places, 1), dtype=values.dtype, device=values.device)
    if values.numel():
        accumulate_(out, indices.reshape(planes, -1, 1), values.reshape(planes, -1, 1), kind)
    return out.reshape(shape)


def _make_max_backward(n: int) -> Callable[..., Tensor]:
    def max_pool_backward(
        grad_output: Tensor, self: Tensor, *args: object, indices: Tensor | None = None
    ) -> Tensor:
        where = indices if indices is not None else args[-1]
        return _into_planes(grad_output, where, self.shape, n, "add")  # type: ignore[arg-type]

    return max_pool_backward


@handles("aten::max_unpool2d")
def max_unpool2d(self: Tensor, indices: Tensor, output_size: Sizes) -> Tensor:
    """Compute `aten::max_unpool2d`: of several values for one element the last one stays."""
    return _into_planes(self, indices, torch.Size([*self.shape[:-2], *output_size]), 2, "set")


@handles("aten::max_unpool3d")
def max_unpool3d(self: Tensor, indices: Tensor, output_size: Sizes, stride: Sizes, padding: Sizes) -> Tensor:
    """Compute `aten::max_unpool3d`."""
    del stride, padding
    return _into_planes(self, indices, torch.Size([*self.shape[:-3], *output_size]), 3, "set")


def _make_fractional(n: int) -> Callable[..., tuple[Tensor, Tensor]]:
    def fractional_max_pool(
        self: Tensor, kernel_size: Sizes, output_size: Sizes, random_samples: Tensor
    ) -> tuple[Tensor, Tensor]:
        sizes, kernel, outputs = self.shape[-n:], _all(kernel_size, n), _all(output_size, n)
        leading = self.shape[:-n]
        planes = self.reshape(leading.numel(), torch.Size(sizes).numel())
        samples = random_samples.to(self.dtype).reshape(leading.numel(), n)
        # Samples of a plane are for its dimensions in order if there are three, else the last comes first.
        columns = range(n) if n == 3 else range(n - 1, -1, -1)
        starts = [
            _starts(samples[:, c], *side) for c, *side in zip(columns, sizes, kernel, outputs, strict=True)
        ]
        values, where = _largest(planes, starts, sizes, kernel)
        shape = (*leading, *outputs)
        return values.reshape(shape), where.reshape(shape)

    return fractional_max_pool


def _starts(sample: Tensor, size: int, kernel: int, outputs: int) -> Tensor:
    """Return where windows start, as (planes, outputs); the last one ends with the plane."""
    last = size - kernel
    if outputs == 1:
        return torch.full((sample.shape[0], 1), last, device=sample.device)
    step = torch.tensor(last, dtype=sample.dtype, device=sample.device) / (outputs - 1)
    at = torch.arange(outputs, device=sample.device).to(sample.dtype)
    starts = ((at + sample[:, None]) * step).to(torch.int64) - (sample * step).to(torch.int64)[:, None]
    starts[:, -1] = last
    return starts


def _largest(planes: Tensor, starts: list[Tensor], sizes: Sizes, kernel: list[int]) -> tuple[Tensor, Tensor]:
    device = planes.device
    best = torch.full((), -torch.inf, dtype=planes.dtype, device=device)
    where = torch.zeros((), dtype=torch.int64, device=device)
    for offset in range(math.prod(kernel)):
        flat, rest = torch.zeros((planes.shape[0], 1), dtype=torch.int64, device=device), offset
        steps: list[int] = []
        for k in reversed(kernel):
            steps.insert(0, rest % k)
            rest //= k
        for start, size, step in zip(starts, sizes, steps, strict=True):
            flat = (flat[:, :, None] * size + (start + step)[:, None, :]).flatten(1)
        value = planes.gather(1, flat)
        better = (value > best) | value.isnan() if offset else torch.ones_like(flat, dtype=torch.bool)
        best, where = torch.where(better, value, best), torch.where(better, flat, where)
    return best, where


@declares_handlers
def _of_dimensions() -> Table:
    avg2, avg2_back = _make_avg_pool(2)
    avg3, avg3_back = _make_avg_pool(3)
    adaptive2, adaptive2_back = _make_adaptive(2)
    adaptive3, adaptive3_back = _make_adaptive(3)
    max2, max3 = _make_max_backward(2), _make_max_backward(3)
    return {
        "aten::avg_pool2d": avg2,
        "aten::avg_pool2d_backward": avg2_back,
        "aten::avg_pool3d": avg3,
        "aten::avg_pool3d_backward": avg3_back,
        "aten::_adaptive_avg_pool2d": adaptive2,
        "aten::_adaptive_avg_pool2d_backward": adaptive2_back,
        "aten::_adaptive_avg_pool3d": adaptive3,
        "aten::_adaptive_avg_pool3d_backward": adaptive3_back,
        "aten::max_pool2d_with_indices_backward": max2,
        "aten::max_pool3d_with_indices_backward": max3,
        "aten::adaptive_max_pool2d_backward": max2,
        "aten::adaptive_max_pool3d_backward": max3,
        "aten::fractional_max_pool2d": _make_fractional(2),
        "aten::fractional_max_pool3d": _make_fractional(3),
        "aten::fractional_max_pool2d_backward": max2,
        "aten::fractional_max_pool3d_backward": max3,
    }
