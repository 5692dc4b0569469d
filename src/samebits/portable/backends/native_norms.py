"""Normalisation by the C kernels: the part of the native backend that is about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.backends.interface import Optional, ThreeTensors
    from samebits.portable.backends.library import Kernels

_float64 = torch.float64


def address(x: Optional) -> int:
    """Return the address of a tensor's first element; 0 if there is no tensor."""
    return 0 if x is None else x.data_ptr()


class NativeNorms:
    """The part of the native backend that calls the kernels of normalisation.

    Args:
        kernels: of this process.
    """

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels

    def layer_norm(self, x: Tensor, weight: Optional, bias: Optional, eps: float, out: ThreeTensors) -> None:
        """See `Backend`."""
        self._layer_norm(x, None, (weight, bias), out, eps)

    def layer_norm_gradient(
        self, gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Optional, out: Tensor
    ) -> None:
        """See `Backend`."""
        self._layer_norm(x, gradient, (weight, None), (out, mean, rstd), 0.0)

    def _layer_norm(
        self, x: Tensor, gradient: Optional, affine: tuple[Optional, Optional], out: ThreeTensors, eps: float
    ) -> None:
        weight, bias = affine
        result, mean, rstd = out
        rows = mean.numel()
        self._kernels.layer_norm(
            is_f64=x.dtype is _float64,
            is_backward=gradient is not None,
            x=x.data_ptr(),
            gradient=address(gradient),
            weight=address(weight),
            bias=address(bias),
            out=result.data_ptr(),
            mean=mean.data_ptr(),
            rstd=rstd.data_ptr(),
            rows=rows,
            n=x.numel() // rows,
            eps=eps,
        )

    def layer_norm_weights(
        self, gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, out: tuple[Tensor, Tensor]
    ) -> None:
        """See `Backend`."""
        of_weight, of_bias = out
        self._kernels.layer_norm_weights(
            is_f64=x.dtype is _float64,
            x=x.data_ptr(),
            gradient=gradient.data_ptr(),
            mean=mean.data_ptr(),
            rstd=rstd.data_ptr(),
            of_weight=of_weight.data_ptr(),
            of_bias=of_bias.data_ptr(),
            rows=mean.numel(),
            n=of_weight.numel(),
        )

    def group_norm(self, x: Tensor, weight: Optional, bias: Optional, eps: float, out: ThreeTensors) -> None:
        """See `Backend`."""
        result, mean, rstd = out
        samples, channels, inner = x.shape
        groups = mean.shape[1]
        self._kernels.group_norm(
            is_f64=x.dtype is _float64,
            x=x.data_ptr(),
            weight=address(weight),
            bias=address(bias),
            out=result.data_ptr(),
            mean=mean.data_ptr(),
            rstd=rstd.data_ptr(),
            samples=samples,
            groups=groups,
            each=channels // groups,
            inner=inner,
            eps=eps,
        )

    def group_norm_gradient(
        self, gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Optional, out: ThreeTensors
    ) -> None:
        """See `Backend`."""
        result, of_weight, of_bias = out
        samples, channels, inner = x.shape
        groups = mean.shape[1]
        self._kernels.group_norm_gradient(
            is_f64=x.dtype is _float64,
            x=x.data_ptr(),
            gradient=gradient.data_ptr(),
            weight=address(weight),
            mean=mean.data_ptr(),
            rstd=rstd.data_ptr(),
            out=result.data_ptr(),
            of_weight=of_weight.data_ptr(),
            of_bias=of_bias.data_ptr(),
            samples=samples,
            groups=groups,
            each=channels // groups,
            inner=inner,
        )

    def batch_norm(
        self,
        x: Tensor,
        weight: Optional,
        bias: Tensor,
        running: tuple[Optional, Optional],
        numbers: tuple[float, float],
        out: ThreeTensors,
    ) -> bool:
        """See `Backend`."""
        if not all(each is None or (each.is_contiguous() and each.dtype == x.dtype) for each in running):
            return False
        eps, momentum = numbers
        result, mean, rstd = out
        outer, channels, inner = x.shape
        self._kernels.batch_norm(
            is_f64=x.dtype is _float64,
            x=x.data_ptr(),
            weight=address(weight),
            bias=bias.data_ptr(),
            running_mean=address(running[0]),
            running_var=address(running[1]),
            out=result.data_ptr(),
            mean=mean.data_ptr(),
            rstd=rstd.data_ptr(),
            outer=outer,
            channels=channels,
            inner=inner,
            eps=eps,
            momentum=momentum,
            rest=1 - momentum,
        )
        return True

    def scale_channels(self, x: Tensor, mean: Tensor, scale: Tensor, shift: Tensor, out: Tensor) -> None:
        """See `Backend`."""
        outer, channels, inner = x.shape
        self._kernels.channel_norm(
            is_f64=x.dtype is _float64,
            x=x.data_ptr(),
            mean=mean.data_ptr(),
            scale=scale.data_ptr(),
            shift=shift.data_ptr(),
            out=out.data_ptr(),
            outer=outer,
            channels=channels,
            inner=inner,
        )

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
        if not x.numel():
            from samebits.portable.backends.reference import ReferenceBackend  # seldom needed

            ReferenceBackend().batch_norm_gradient(gradient, x, statistics, weight, out, training=training)
            return
        mean, rstd = statistics
        result, of_weight, of_bias = out
        outer, channels, inner = x.shape
        self._kernels.batch_norm_gradient(
            is_f64=x.dtype is _float64,
            training=training,
            x=x.data_ptr(),
            gradient=gradient.data_ptr(),
            weight=address(weight),
            mean=mean.data_ptr(),
            rstd=rstd.data_ptr(),
            out=address(result),
            of_weight=of_weight.data_ptr(),
            of_bias=of_bias.data_ptr(),
            outer=outer,
            channels=channels,
            inner=inner,
        )
