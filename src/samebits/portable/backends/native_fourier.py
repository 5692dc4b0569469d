"""Complex numbers by the C kernels: the part of the native backend that is about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable.backends.native_norms import NativeNorms, address
from samebits.portable.kernels import complex_numbers

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.backends.interface import Optional
    from samebits.portable.kernels.fourier import Stages, Transform

_PAIRS = {name: code for code, name in enumerate(complex_numbers.NAMES)}


class NativeFourier(NativeNorms):
    """The part of the native backend that calls the kernels of complex numbers."""

    def pairs(self, name: str, x: Tensor, y: Tensor, out: Tensor) -> None:
        """See `Backend`."""
        self._kernels.pairs(
            function=_PAIRS[name],
            is_f64=x.dtype is torch.complex128,
            x=x.data_ptr(),
            y=y.data_ptr(),
            out=out.data_ptr(),
            numel=x.numel(),
        )

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
