"""Fourier transforms by the C kernels: the part of the native backend that is about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable.backends.native_norms import NativeNorms, address

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.backends.interface import Optional
    from samebits.portable.kernels.fourier import Stages, Transform


class NativeFourier(NativeNorms):
    """The part of the native backend that calls the kernel of Fourier transforms."""

    def fourier(self, x: Tensor, out: Tensor, transform: Transform, stages: Stages, turns: Optional) -> None:
        """See `Backend`."""
        outer, n, inner = transform.sizes
        self._kernels.fft(
            kind=transform.kind,
            is_f64=stages.table.dtype is torch.float64,
            is_inverse=transform.inverse,
            outer=outer,
            n=n,
            inner=inner,
            x=x.data_ptr(),
            out=out.data_ptr(),
            stages=stages.radices.numel(),
            radices=stages.radices.data_ptr(),
            table=stages.table.data_ptr(),
            first=stages.first.data_ptr(),
            turns=address(turns),
            scale=transform.scale,
        )
