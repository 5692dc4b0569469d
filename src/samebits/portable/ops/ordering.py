"""Sorting, choosing and searching: what depends on the order of values.

The functions that choose among inputs by position give elements as they are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.portable import unique_ascending
from samebits.portable._registry import handles, rounds_itself

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    Pair = tuple[Tensor, Tensor]


@handles("aten::amax")
@rounds_itself
def amax(self: Tensor, dim: list[int] | tuple[int, ...] = (), keepdim: bool = False) -> Tensor:
    """Compute `aten::amax`."""
    return _positive(torch.amax(self, dim, keepdim))


@handles("aten::amin")
@rounds_itself
def amin(self: Tensor, dim: list[int] | tuple[int, ...] = (), keepdim: bool = False) -> Tensor:
    """Compute `aten::amin`."""
    return _positive(torch.amin(self, dim, keepdim))


@handles("aten::aminmax")
@rounds_itself
def aminmax(self: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Pair:
    """Compute `aten::aminmax`."""
    least, most = torch.aminmax(self, dim=dim, keepdim=keepdim)
    return _positive(least), _positive(most)


@handles("aten::max")
@rounds_itself
def max_all(self: Tensor) -> Tensor:
    """Compute `aten::max`."""
    return _positive(torch.max(self))


@handles("aten::min")
@rounds_itself
def min_all(self: Tensor) -> Tensor:
    """Compute `aten::min`."""
    return _positive(torch.min(self))


@handles("aten::max.dim")
@rounds_itself
def max_dim(self: Tensor, dim: int, keepdim: bool = False) -> Pair:
    """Compute `aten::max.dim`: the first NaN, otherwise the first of the greatest."""
    values, indices = torch.max(self, dim, keepdim)
    return values, indices


@handles("aten::min.dim")
@rounds_itself
def min_dim(self: Tensor, dim: int, keepdim: bool = False) -> Pair:
    """Compute `aten::min.dim`: the first NaN, otherwise the first of the smallest."""
    values, indices = torch.min(self, dim, keepdim)
    return values, indices


@handles("aten::argmax")
@rounds_itself
def argmax(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Compute `aten::argmax`."""
    return torch.argmax(self, dim, keepdim)


@handles("aten::argmin")
@rounds_itself
def argmin(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Compute `aten::argmin`."""
    return torch.argmin(self, dim, keepdim)


@handles("aten::cummax")
@rounds_itself
def cummax(self: Tensor, dim: int) -> Pair:
    """Compute `aten::cummax`: among equals the last counts."""
    values, indices = torch.cummax(self, dim)
    return values, indices


@handles("aten::cummin")
@rounds_itself
def cummin(self: Tensor, dim: int) -> Pair:
    """Compute `aten::cummin`: among equals the last counts."""
    values, indices = torch.cummin(self, dim)
    return values, indices


@handles("aten::sort")
@rounds_itself
def sort(self: Tensor, dim: int = -1, descending: bool = False) -> Pair:
    """Compute `aten::sort`: equals keep their order; NaN is above all."""
    values, indices = torch.sort(self, stable=True, dim=dim, descending=descending)
    return values, indices


@handles("aten::sort.stable")
@rounds_itself
def sort_stable(self: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False) -> Pair:
    """Compute `aten::sort.stable`."""
    return sort(self, dim, descending)


@handles("aten::topk")
@rounds_itself
def topk(self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Pair:
    """Compute `aten::topk`: the first k of `sort`."""
    size = self.shape[dim] if self.dim() else 1
    if not 0 <= k <= size:
        raise RuntimeError("selected index k out of range")
    values, indices = sort(self, dim, largest)
    if not self.dim():
        return values, indices
    return values.narrow(dim, 0, k).clone(), indices.narrow(dim, 0, k).clone()


@handles("aten::kthvalue")
@rounds_itself
def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Pair:
    """Compute `aten::kthvalue`: the element k - 1 of `sort`."""
    size = self.shape[dim] if self.dim() else 1
    if not 1 <= k <= size:
        raise RuntimeError("kthvalue(): selected number k out of range for dimension")
    return _picked(
        self, dim, keepdim, lambda values: torch.full_like(values.narrow(dim, 0, 1), k - 1, dtype=torch.int64)
    )


@handles("aten::median")
@rounds_itself
def median(self: Tensor) -> Tensor:
    """Compute `aten::median`: the element (n - 1) // 2 of `sort`; NaN if there is one."""
    return median_dim(self.reshape(-1), 0)[0] if self.numel() else _nothing(self)


@handles("aten::median.dim")
@rounds_itself
def median_dim(self: Tensor, dim: int, keepdim: bool = False) -> Pair:
    """Compute `aten::median.dim`: the element (n - 1) // 2 of `sort`; the first NaN if there is one."""
    return _picked(self, dim, keepdim, lambda values: _middle(values, dim, nan_counts=True))


@handles("aten::nanmedian")
@rounds_itself
def nanmedian(self: Tensor) -> Tensor:
    """Compute `aten::nanmedian`."""
    return nanmedian_dim(self.reshape(-1), 0)[0] if self.numel() else _nothing(self)


@handles("aten::nanmedian.dim")
@rounds_itself
def nanmedian_dim(self: Tensor, dim: int, keepdim: bool = False) -> Pair:
    """Compute `aten::nanmedian.dim` without the NaNs; the first of them if there is nothing else."""
    return _picked(self, dim, keepdim, lambda values: _middle(values, dim, nan_counts=False))


@handles("aten::mode")
@rounds_itself
def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> Pair:
    """Compute `aten::mode`: the smallest of the most frequent values, and its last position."""
    if not self.dim():
        return self.clone(), torch.zeros((), dtype=torch.int64, device=self.device)
    values, indices = sort(self, dim)
    values, indices = values.movedim(dim, -1), indices.movedim(dim, -1)
    position = torch.arange(values.shape[-1], device=values.device).expand(values.shape)
    fresh = torch.ones_like(values, dtype=torch.bool)
    fresh[..., 1:] = values[..., 1:] != values[..., :-1]
    starts = torch.cummax(torch.where(fresh, position, 0), -1)[0]
    last = torch.argmax(position - starts, -1, keepdim=True)  # the first of the longest runs
    picked = values.gather(-1, last), indices.gather(-1, last)
    value, index = (part.movedim(-1, dim) for part in picked)
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


@handles("aten::_unique2")
@rounds_itself
def unique(
    self: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `aten::_unique2`, always ascending."""
    return unique_ascending(_positive(self), inverse=return_inverse, counts=return_counts)


@handles("aten::unique_dim")
@rounds_itself
def unique_dim(
    self: Tensor,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `aten::unique_dim`, always ascending."""
    values, inverse, counts = torch.ops.aten.unique_dim(
        _positive(self), dim, True, return_inverse, return_counts
    )
    return values, inverse, counts


@handles("aten::unique_consecutive")
@rounds_itself
def unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `aten::unique_consecutive`."""
    values, inverse, counts = torch.ops.aten.unique_consecutive(self, return_inverse, return_counts, dim)
    return values, inverse, counts


def _picked(x: Tensor, dim: int, keepdim: bool, choose: Callable[[Tensor], Tensor]) -> Pair:
    """Return the elements of the sorted input at the chosen positions, and their former positions."""
    if not x.dim():
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    values, indices = sort(x, dim)
    chosen = choose(values)
    value, index = values.gather(dim, chosen), indices.gather(dim, chosen)
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


def _middle(values: Tensor, dim: int, *, nan_counts: bool) -> Tensor:
    size = values.shape[dim]
    if not size:
        raise IndexError("median(): Expected reduction dim to have non-zero size.")
    if not values.is_floating_point():
        return torch.full_like(values.narrow(dim, 0, 1), (size - 1) // 2, dtype=torch.int64)
    numbers = size - values.isnan().sum(dim, keepdim=True)
    middle = torch.clamp(numbers - 1, min=0) // 2
    # NaNs are at the end of what is sorted, in their order: the first one follows the numbers.
    return torch.where(numbers < size, numbers, middle) if nan_counts else middle


def _nothing(x: Tensor) -> Tensor:
    value = float("nan") if x.is_floating_point() else torch.iinfo(x.dtype).min
    return torch.full((), value, dtype=x.dtype, device=x.device)


def _positive(x: Tensor) -> Tensor:
    return x + 0 if x.is_floating_point() else x


Bound = Any  # a number, a tensor or None


@handles("aten::maximum")
@rounds_itself
def maximum(self: Tensor, other: Tensor) -> Tensor:
    """Compute `aten::maximum`: NaN if either input is."""
    return _zero_is_positive(torch.maximum(self, other))


@handles("aten::minimum")
@rounds_itself
def minimum(self: Tensor, other: Tensor) -> Tensor:
    """Compute `aten::minimum`: NaN if either input is."""
    return _zero_is_positive(torch.minimum(self, other))


@handles("aten::fmax")
@rounds_itself
def fmax(self: Tensor, other: Tensor) -> Tensor:
    """Compute `aten::fmax`: where one input is NaN, the other one."""
    return _zero_is_positive(torch.fmax(self, other))


@handles("aten::fmin")
@rounds_itself
def fmin(self: Tensor, other: Tensor) -> Tensor:
    """Compute `aten::fmin`: where one input is NaN, the other one."""
    return _zero_is_positive(torch.fmin(self, other))


@handles("aten::clamp", "aten::clamp.Tensor")
@rounds_itself
def clamp(self: Tensor, min: Bound = None, max: Bound = None) -> Tensor:
    """Compute `aten::clamp`: the smaller of `max` and the larger of `min` and the element."""
    if max is None and isinstance(min, int | float) and min == 0:
        return relu(self) if _keeps_dtype(self, min) else _zero_is_positive(torch.clamp(self, min=min))
    return _zero_is_positive(torch.clamp(self, min, max))


@handles("aten::clamp_min", "aten::clamp_min.Tensor")
@rounds_itself
def clamp_min(self: Tensor, min: Bound) -> Tensor:
    """Compute `aten::clamp_min`."""
    return clamp(self, min)


@handles("aten::clamp_max", "aten::clamp_max.Tensor")
@rounds_itself
def clamp_max(self: Tensor, max: Bound) -> Tensor:
    """Compute `aten::clamp_max`."""
    return clamp(self, None, max)


@handles("aten::relu")
@rounds_itself
def relu(self: Tensor) -> Tensor:
    """Compute `aten::relu`: +0 where the element is not above 0; NaN stays NaN."""
    return torch.threshold(self, 0, 0)


@handles("aten::hardtanh")
@rounds_itself
def hardtanh(self: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    """Compute `aten::hardtanh`; of integers it is exact: torch takes the whole parts of the bounds."""
    if not self.is_floating_point():
        return torch.ops.aten.hardtanh(self, min_val, max_val)  # type: ignore[no-any-return]
    return clamp(self, min_val, max_val)


@handles("aten::clamp_", "aten::clamp_.Tensor")
@rounds_itself
def clamp_in_place(self: Tensor, min: Bound = None, max: Bound = None) -> Tensor:
    """Compute `aten::clamp_`."""
    if max is None and isinstance(min, int | float) and min == 0 and _keeps_dtype(self, min):
        return relu_in_place(self)
    return _zero_is_positive(torch.clamp_(self, min, max))


@handles("aten::clamp_min_", "aten::clamp_min_.Tensor")
@rounds_itself
def clamp_min_in_place(self: Tensor, min: Bound) -> Tensor:
    """Compute `aten::clamp_min_`."""
    return clamp_in_place(self, min)


@handles("aten::clamp_max_", "aten::clamp_max_.Tensor")
@rounds_itself
def clamp_max_in_place(self: Tensor, max: Bound) -> Tensor:
    """Compute `aten::clamp_max_`."""
    return clamp_in_place(self, None, max)


@handles("aten::relu_")
@rounds_itself
def relu_in_place(self: Tensor) -> Tensor:
    """Compute `aten::relu_`."""
    return torch.threshold_(self, 0, 0)


@handles("aten::hardtanh_")
@rounds_itself
def hardtanh_in_place(self: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    """Compute `aten::hardtanh_`."""
    if not self.is_floating_point():
        return torch.ops.aten.hardtanh_(self, min_val, max_val)  # type: ignore[no-any-return]
    return clamp_in_place(self, min_val, max_val)


def _keeps_dtype(tensor: Tensor, number: float) -> bool:
    return tensor.is_floating_point() and not math.isnan(number)


def _zero_is_positive(fresh: Tensor) -> Tensor:
    """Make every -0 a +0 in place; adding 0 changes nothing else."""
    return fresh.add_(0) if fresh.is_floating_point() else fresh
