"""Convolutions, and the ops that take images apart into columns and put them together again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.errors import SamebitsError
from samebits.portable._devices import device_types
from samebits.portable._registry import handles
from samebits.portable._tensors import REAL
from samebits.portable.kernels.contractions import (
    Geometry,
    convolution_weight_gradient,
    convolve,
    convolve_transposed,
)
from samebits.portable.kernels.reductions import sum_over

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from samebits.portable.kernels.contractions import Index, Sizes

_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


@handles("aten::convolution", "aten::convolution_overrideable")
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Compute `aten::convolution`."""
    if input.dim() == weight.dim() - 1:
        one = convolution(
            input.unsqueeze(0), weight, bias, stride, padding, dilation, transposed, output_padding, groups
        )
        return one.squeeze(0)
    dims = weight.dim() - 2
    geometry = Geometry(_each(stride, dims), _each(padding, dims), _each(dilation, dims), groups)
    extra = _each(output_padding, dims)
    _check(input, weight, bias, geometry, extra, is_transposed=transposed)
    if transposed:
        out = _transposed(input, weight, bias, geometry, extra)
    else:
        out = convolve(input, weight, bias, geometry)
    return _like(out, input, weight)


@handles("aten::convolution_backward")
def convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Compute `aten::convolution_backward`."""
    del bias_sizes, output_padding
    dims = weight.dim() - 2
    geometry = Geometry(_each(stride, dims), _each(padding, dims), _each(dilation, dims), groups)
    _check_kind(grad_output, input, weight)
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        of_input = _like(
            _input_gradient(grad_output, input, weight, geometry, is_transposed=transposed), input, weight
        )
    if output_mask[1]:
        pair = (input, grad_output) if transposed else (grad_output, input)
        of_weight = _like(
            convolution_weight_gradient(*pair, tuple(weight.shape[2:]), geometry), input, weight
        )
    if output_mask[2]:
        of_bias = sum_over(grad_output, (0, *range(2, grad_output.dim())))
    return of_input, of_weight, of_bias


def _input_gradient(
    gradient: Tensor, image: Tensor, weight: Tensor, geometry: Geometry, *, is_transposed: bool
) -> Tensor:
    if not is_transposed:
        return convolve_transposed(gradient, weight, None, geometry, tuple(image.shape[2:]))
    # Beyond the positions that reach an input there may be some that output_padding added.
    inputs = convolve(gradient, weight, None, geometry)
    reached: Index = (..., *(slice(n) for n in image.shape[2:]))
    return inputs[reached].contiguous()


def _transposed(
    image: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry, extra: Sizes
) -> Tensor:
    stride, padding, dilation, _ = geometry
    sizes = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, s, p, d, k, e in zip(
            image.shape[2:], stride, padding, dilation, weight.shape[2:], extra, strict=True
        )
    )
    return convolve_transposed(image, weight, bias, geometry, sizes)


def _each(value: Sequence[int], dims: int) -> Sizes:
    return tuple(value) if len(value) == dims else tuple(value) * dims


def _like(out: Tensor, image: Tensor, weight: Tensor) -> Tensor:
    """Return the result with channels last if torch gives it so: if the input or the weight has them last."""
    wanted = _CHANNELS_LAST.get(out.dim())
    if wanted is None or not (_has_channels_last(image, wanted) or _has_channels_last(weight, wanted)):
        return out
    return out.contiguous(memory_format=wanted)


def _has_channels_last(tensor: Tensor, wanted: torch.memory_format) -> bool:
    return tensor.is_contiguous(memory_format=wanted) and not tensor.is_contiguous()


def _check(
    image: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    geometry: Geometry,
    extra: Sizes,
    *,
    is_transposed: bool,
) -> None:
    """Raise RuntimeError, as torch does, for sizes that do not fit."""
    _check_kind(image, weight, *(() if bias is None else (bias,)))
    stride, padding, dilation, groups = geometry
    fits = (
        image.dim() == weight.dim()
        and groups > 0
        and min(stride) > 0
        and min(dilation) > 0
        and min(padding) >= 0
    )
    if fits:
        rows, depth = weight.shape[:2]
        inputs, outputs = (rows, depth * groups) if is_transposed else (depth * groups, rows)
        fits = image.shape[1] == inputs and rows % groups == 0 and min(weight.shape[2:]) > 0
        fits &= bias is None or (bias.dim() == 1 and bias.shape[0] == outputs)
        if is_transposed:
            fits &= all(0 <= e < max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True))
        else:
            reach = zip(image.shape[2:], padding, dilation, weight.shape[2:], strict=True)
            fits &= all(n + 2 * p > d * (k - 1) for n, p, d, k in reach)
    if fits:
        return
    raise RuntimeError(
        f"a convolution of an input of size {tuple(image.shape)} and a weight of {tuple(weight.shape)} with "
        f"stride {stride}, padding {padding}, dilation {dilation}, groups {groups}: "
        "sizes or channels do not fit"
    )


def _check_kind(*tensors: Tensor) -> None:
    dtype = tensors[0].dtype
    for tensor in tensors:
        if tensor.dtype not in REAL or tensor.device.type not in device_types():
            raise SamebitsError(
                f"a convolution of {tensor.dtype} on {tensor.device} has no portable kernel: "
                "use floating-point tensors on the CPU or a GPU of NVIDIA, or run without portable mode",
                slug="portable-op",
            )
        if tensor.dtype != dtype:
            raise RuntimeError(f"a convolution of {dtype} and {tensor.dtype}: they should be the same")


@handles("aten::_convolution", "aten::_convolution.deprecated")
def _convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    *_settings: bool,
) -> Tensor:
    """Compute `aten::_convolution`; its last parameters choose between libraries."""
    return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


@handles("aten::mkldnn_convolution")
def mkldnn_convolution(
    self: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """Compute `aten::mkldnn_convolution`."""
    return convolution(self, weight, bias, stride, padding, dilation, False, (0,), groups)


@handles(
    "aten::_slow_conv2d_forward",
    "aten::slow_conv3d_forward",
    "aten::slow_conv_dilated2d",
    "aten::slow_conv_dilated3d",
)
def slow_conv(
    self: Tensor,
    weight: Tensor,
    kernel_size: Sequence[int],
    bias: Tensor | None = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
) -> Tensor:
    """Compute `aten::_slow_conv2d_forward`, `slow_conv3d_forward`, `slow_conv_dilated*`: one group."""
    return convolution(
        self, _with_sizes(weight, self, kernel_size), bias, stride, padding, dilation, False, (0,), 1
    )


@handles("aten::slow_conv_transpose2d", "aten::slow_conv_transpose3d")
def slow_conv_transpose(
    self: Tensor,
    weight: Tensor,
    kernel_size: Sequence[int],
    bias: Tensor | None = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    output_padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
) -> Tensor:
    """Compute `aten::slow_conv_transpose2d` and `slow_conv_transpose3d`."""
    del kernel_size
    return convolution(self, weight, bias, stride, padding, dilation, True, output_padding, 1)


@handles("aten::_slow_conv2d_backward.output_mask")
def slow_conv2d_backward(
    grad_output: Tensor,
    self: Tensor,
    weight: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Compute `aten::_slow_conv2d_backward.output_mask`."""
    del kernel_size
    return convolution_backward(
        grad_output, self, weight, None, stride, padding, (1,), False, (0,), 1, output_mask
    )


@handles("aten::_conv_depthwise2d", "aten::conv_depthwise3d")
def depthwise(
    self: Tensor,
    weight: Tensor,
    kernel_size: Sequence[int],
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """Compute `aten::_conv_depthwise2d` and `conv_depthwise3d`: a group for each channel."""
    del kernel_size
    return convolution(
        self, weight, bias, stride, padding, dilation, False, (0,), self.shape[-weight.dim() + 1]
    )


@handles("aten::conv_tbc")
def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Compute `aten::conv_tbc` of (time, batch, channel); the weight is (kernel, channel, output channel)."""
    out = convolution(
        self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, (1,), (pad,), (1,), False, (0,), 1
    )
    return out.permute(2, 0, 1).contiguous()


@handles("aten::im2col")
def im2col(
    self: Tensor,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    """Compute `aten::im2col`: only moves data."""
    return torch.ops.aten.im2col(self, kernel_size, dilation, padding, stride)  # type: ignore[no-any-return]


@handles("aten::col2im")
def col2im(
    self: Tensor,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    """Compute `aten::col2im`: the columns of each tap are added to zeros, taps in row-major order."""
    if self.dim() == 2:
        return col2im(self.unsqueeze(0), output_size, kernel_size, dilation, padding, stride).squeeze(0)
    kernel, dilations, pads, strides = (_each(value, 2) for value in (kernel_size, dilation, padding, stride))
    height, width = output_size
    blocks = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(output_size, pads, dilations, kernel, strides, strict=True)
    ]
    if self.shape[-1] != blocks[0] * blocks[1] or min(blocks) < 1 or self.shape[1] % (kernel[0] * kernel[1]):
        raise RuntimeError(
            f"columns of size {tuple(self.shape)} do not fold to blocks {blocks} of kernel {kernel}"
        )
    columns = self.reshape(self.shape[0], -1, *kernel, *blocks)
    out = self.new_zeros((*columns.shape[:2], height + 2 * pads[0], width + 2 * pads[1]))
    for y in range(kernel[0]):
        rows = slice(y * dilations[0], y * dilations[0] + strides[0] * (blocks[0] - 1) + 1, strides[0])
        for x in range(kernel[1]):
            pixels = slice(x * dilations[1], x * dilations[1] + strides[1] * (blocks[1] - 1) + 1, strides[1])
            out[:, :, rows, pixels] += columns[:, :, y, x]
    return out[:, :, pads[0] : pads[0] + height, pads[1] : pads[1] + width].contiguous()


def _with_sizes(weight: Tensor, image: Tensor, kernel: Sequence[int]) -> Tensor:
    """Return the weight, with its sizes where it is given as a matrix, as torch's slow convolutions allow."""
    if weight.dim() != 2:
        return weight
    return weight.reshape(weight.shape[0], image.shape[-len(kernel) - 1], *kernel)
