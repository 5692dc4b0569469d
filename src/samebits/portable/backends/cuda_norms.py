"""Normalisation on a GPU: the part of the backend that consists of several launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits._cuda.units import OTHERS
from samebits.portable.backends.cuda_kernels import suffixed
from samebits.portable.backends.native_norms import NativeNorms, address
from samebits.portable.backends.parameters_cuda import SbdChannelGradient, SbdNormalRows

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.backends.interface import Optional, ThreeTensors

_float64 = torch.float64


class CudaNorms(NativeNorms):
    """The part of the backend of a GPU that is about normalisation."""

    _launch: Any
    reduce: Any

    def layer_norm_weights(
        self, gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, out: tuple[Tensor, Tensor]
    ) -> None:
        """See `Backend`."""
        rows, n = mean.numel(), out[0].numel()
        normal = torch.empty_like(x)
        given = SbdNormalRows(
            x.data_ptr(), mean.data_ptr(), rstd.data_ptr(), normal.data_ptr(), rows=rows, n=n
        )
        self._launch(OTHERS, suffixed("normal_rows", is_f64=x.dtype is _float64), given, rows * n)
        gradient = gradient.view(rows, n)
        self.reduce("sum_products_over", gradient, (0,), out[0], normal.view(rows, n), None)
        self.reduce("sum_over", gradient, (0,), out[1], None, None)

    def group_norm_gradient(
        self, gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Optional, out: ThreeTensors
    ) -> None:
        """See `Backend`."""
        samples, channels, inner = x.shape
        groups = mean.shape[1]
        each = channels // groups
        means, rstds = (values.reshape(-1).repeat_interleave(each) for values in (mean, rstd))
        flat = [values.view(1, samples * channels, inner) for values in (gradient, x)]
        sums, crosses = self._sums(flat[0], flat[1], means)
        weights = (x.new_ones(channels) if weight is None else weight).repeat(samples)
        count = _number(each * inner, x)
        shift, slope = (self._over_group(values, weights, each) for values in (sums, crosses))
        shift = (shift / count).repeat_interleave(each)
        slope = (slope / count * rstd.reshape(-1) * rstd.reshape(-1)).repeat_interleave(each)
        self._channel_gradient(flat, (means, slope, weights, shift, rstds), out[0])
        by_sample = [values.view(samples, channels) for values in (crosses, rstds, sums)]
        self.reduce("sum_products_over", by_sample[0], (0,), out[1], by_sample[1], None)
        self.reduce("sum_over", by_sample[2], (0,), out[2], None, None)

    def _over_group(self, values: Tensor, weights: Tensor, each: int) -> Tensor:
        total = values.new_empty(values.numel() // each)
        self.reduce("sum_products_over", values.view(-1, each), (1,), total, weights.view(-1, each), None)
        return total

    def batch_norm(self, *_: Any) -> bool:
        """See `Backend`: it takes several launches."""
        return False

    def batch_norm_gradient(
        self,
        gradient: Tensor,
        x: Tensor,
        statistics: tuple[Tensor, Tensor],
        weight: Optional,
        out: tuple[Optional, Tensor, Tensor],
        *,
        training: bool,
    ) -> None:
        """See `Backend`."""
        mean, rstd = (values.contiguous() for values in statistics)
        of_x, of_weight, of_bias = out
        sums, crosses = self._sums(gradient, x, mean)
        of_weight.copy_(crosses * rstd)
        of_bias.copy_(sums)
        if of_x is None or not x.numel():
            return
        count, nothing = _number(x.shape[0] * x.shape[2], x), torch.zeros_like(rstd)
        slope = crosses / count * rstd * rstd if training else nothing
        shift = sums / count if training else nothing
        scale = rstd if weight is None else rstd * weight
        self._channel_gradient([gradient, x], (mean, slope, torch.ones_like(rstd), shift, scale), of_x)

    def _sums(self, gradient: Tensor, x: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sums of the gradient, and of gradient times deviation, of each channel."""
        sums, crosses = x.new_zeros(x.shape[1]), x.new_zeros(x.shape[1])
        if x.numel():
            self.reduce("sum_over", gradient, (0, 2), sums, None, None)
            self.reduce("sum_cross_over", x, (0, 2), crosses, gradient, mean)
        return sums, crosses

    def _channel_gradient(self, flat: list[Tensor], terms: tuple[Tensor, ...], out: Tensor) -> None:
        gradient, x = flat
        outer, channels, inner = x.shape
        mean, slope, weight, shift, scale = terms
        addresses = map(address, (x, gradient, mean, slope, weight, shift, scale, out))
        given = SbdChannelGradient._make((*addresses, outer, channels, inner))
        self._launch(OTHERS, suffixed("channel_gradient", is_f64=x.dtype is _float64), given, x.numel())


def _number(value: int, like: Tensor) -> Tensor:
    """Return a number where the tensor lies: torch divides by it, where it would multiply by 1 / value."""
    return torch.full((), value, dtype=like.dtype, device=like.device)
