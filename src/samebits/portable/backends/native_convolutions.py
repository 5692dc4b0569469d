"""Convolutions by the C kernels: the part of the native backend that is about them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable.backends.native_norms import NativeNorms, address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from samebits.portable.backends.interface import Optional
    from samebits.portable.kernels.contractions import Geometry, Sizes

_float64 = torch.float64


class NativeConvolutions(NativeNorms):
    """The part of the native backend that calls the kernels of convolutions."""

    def convolve(
        self, image: Tensor, weight: Tensor, bias: Optional, geometry: Geometry, out: Tensor
    ) -> None:
        """See `Backend`."""
        self._convolve(image, weight, bias, geometry, out, is_transposed=False)

    def convolve_transposed(
        self, image: Tensor, weight: Tensor, bias: Optional, geometry: Geometry, out: Tensor
    ) -> None:
        """See `Backend`."""
        self._convolve(image, weight, bias, geometry, out, is_transposed=True)

    def _convolve(
        self,
        image: Tensor,
        weight: Tensor,
        bias: Optional,
        geometry: Geometry,
        out: Tensor,
        *,
        is_transposed: bool,
    ) -> None:
        image, weight = image.contiguous(), weight.contiguous()
        bias = None if bias is None else bias.contiguous()
        self._conv(
            is_f64=out.dtype is _float64,
            is_transposed=is_transposed,
            image=image.data_ptr(),
            weight=weight.data_ptr(),
            bias=address(bias),
            out=out.data_ptr(),
            **_sizes(image, out, weight.shape[2:], geometry),
        )

    def _conv(self, **parameters: Any) -> None:
        """Compute what `Conv` describes."""
        self._kernels.conv(**parameters)

    def convolution_weight(
        self, gradient: Tensor, image: Tensor, kernel: Sizes, geometry: Geometry, out: Tensor
    ) -> None:
        """See `Backend`."""
        image, gradient = image.contiguous(), gradient.contiguous()
        self._conv_weight(
            out,
            image=image.data_ptr(),
            gradient=gradient.data_ptr(),
            **_sizes(image, gradient, kernel, geometry),
        )

    def _conv_weight(self, out: Tensor, **parameters: Any) -> None:
        """Compute what `ConvWeight` describes, into `out`."""
        self._kernels.conv_weight(is_f64=out.dtype is _float64, of_weight=out.data_ptr(), **parameters)


def _sizes(image: Tensor, out: Tensor, kernel: Sizes, geometry: Geometry) -> dict[str, Any]:
    """Return the parameters of a convolution that are no addresses, by name."""
    groups = geometry.groups
    names = ("size", "out_size", "kernel", "stride", "padding", "dilation")
    in_three = _three(image.shape[2:], out.shape[2:], kernel, *geometry[:3])
    return {
        "samples": image.shape[0],
        "groups": groups,
        "depth": image.shape[1] // groups,
        "rows": out.shape[1] // groups,
        **dict(zip(names, in_three, strict=True)),
    }


def _three(*sizes: Sequence[int]) -> tuple[Sequence[int], ...]:
    """Return size, output, kernel, stride, padding, dilation of three dimensions: missing ones are 1 or 0."""
    image, out, kernel, stride, padding, _ = sizes
    ones = (1, 1, 1)
    if image == out and max(kernel) == 1 and not any(padding) and max(stride) == 1:
        row = (1, 1, math.prod(image))  # one long row: nothing has to be copied
        return row, row, ones, ones, (0, 0, 0), ones
    missing = 3 - len(image)
    if not missing:
        return sizes
    one, zero = ones[:missing], (0,) * missing
    return (*((*one, *each) for each in sizes[:4]), (*zero, *padding), (*one, *sizes[5]))
