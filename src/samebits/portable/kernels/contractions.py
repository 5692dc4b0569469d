"""Matrix products, convolutions and the gradients of convolutions.

See "Contractions" and "Convolutions" in docs/reference/portable-numerics.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from samebits.portable.backends import backend_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import EllipsisType

    from torch import Tensor

    Index = tuple[EllipsisType | slice, ...]

Sizes = tuple[int, ...]


def gemm(a: Tensor, b: Tensor, self: Tensor | None = None, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """Compute `a @ b * alpha + self * beta` for matrices, or for batches of them.

    Args:
        a: (m, k) or (batch, m, k), float32 or float64, any strides, in CPU memory.
        b: (k, n) or (batch, k, n), the same dtype.
        self: the same dtype, of a shape that expands to the result's; None to add nothing.
        beta: not 0.
        alpha: scales the product before `self` is added.

    Returns:
        (m, n) or (batch, m, n), contiguous.

    Raises:
        RuntimeError: if a has not as many columns as b has rows.
    """
    if a.is_neg() or b.is_neg() or (self is not None and self.is_neg()):
        a, b, self = a.resolve_neg(), b.resolve_neg(), None if self is None else self.resolve_neg()
    if a.dim() == 2:
        m, k = a.shape
        rows, n = b.shape
        if rows != k:  # a kernel would read other memory
            raise RuntimeError(f"{m}x{k} and {rows}x{n} cannot be multiplied")
        sizes, out = (0, m, n, k), a.new_empty(m, n)  # faster than with a tuple
    else:
        batches, m, k = a.shape
        n = b.shape[2]
        sizes, out = (batches, m, n, k), a.new_empty((batches, m, n))
        if not batches:
            return out
    backend_of(a).gemm(a, b, self, (alpha, beta), sizes, out)
    return out


class Geometry(NamedTuple):
    """The parameters of a convolution that is not transposed; one number for each dimension.

    Args:
        stride, padding, dilation: as in torch.
        groups: as in torch.
    """

    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int


def convolve(image: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry) -> Tensor:
    """Compute a convolution.

    Args:
        image: (samples, channels, sizes...), float32 or float64, one to three sizes.
        weight: (output channels, channels / groups, kernel...), the same dtype.
        bias: (output channels), the same dtype.
        geometry: of the convolution.

    Returns:
        (samples, output channels, sizes...), contiguous.
    """
    stride, padding, dilation, groups = geometry
    kernel = weight.shape[2:]
    if _is_pointwise(kernel, padding):
        image = _sampled(image, stride)
        geometry = Geometry((1,) * len(kernel), padding, dilation, groups)
        stride = geometry.stride
    sizes = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(image.shape[2:], padding, dilation, kernel, stride, strict=True)
    )
    return _convolve(image, weight, bias, geometry, (weight.shape[0], *sizes), is_transposed=False)


def convolve_transposed(
    image: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry, sizes: Sizes
) -> Tensor:
    """Compute the transpose of a convolution, which is also the gradient of the convolution's input.

    Args:
        image: or the gradient of the output, (samples, output channels, sizes...).
        weight: (output channels, channels / groups, kernel...), as of the convolution.
        bias: (channels), for what torch calls a transposed convolution.
        geometry: of the convolution.
        sizes: of its input.

    Returns:
        (samples, channels, sizes...), contiguous.
    """
    # The kernel leaves out products with the zeros between samples, which an infinite weight makes NaN.
    # Those of a GPU look at the weight themselves: to ask here would wait for the device.
    if max(geometry.stride) > 1 and not weight.is_cuda and not bool(torch.isfinite(weight).all()):
        return _spread_and_convolve(image, weight, bias, geometry, sizes)
    channels = weight.shape[1] * geometry.groups
    return _convolve(image, weight, bias, geometry, (channels, *sizes), is_transposed=True)


def convolution_weight_gradient(gradient: Tensor, image: Tensor, kernel: Sizes, geometry: Geometry) -> Tensor:
    """Compute the gradient of a convolution's weight.

    Args:
        gradient: of the output, (samples, output channels, sizes...).
        image: the input, (samples, channels, sizes...).
        kernel: sizes of the kernel.
        geometry: of the convolution.

    Returns:
        (output channels, channels / groups, kernel...), contiguous.
    """
    groups = geometry.groups
    depth, rows = image.shape[1] // groups, gradient.shape[1] // groups
    out = image.new_empty((groups * rows, depth, *kernel))
    if not out.numel():
        return out
    if not gradient.numel() or not image.numel():
        return out.zero_()
    if _is_pointwise(kernel, geometry.padding):
        met: Index = (..., *(slice(n) for n in gradient.shape[2:]))
        image = _sampled(image, geometry.stride)[met]
        geometry = geometry._replace(stride=(1,) * len(kernel))
    backend_of(out).convolution_weight(gradient, image, kernel, geometry, out)
    return out


def _convolve(
    image: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    geometry: Geometry,
    shape: Sizes,
    *,
    is_transposed: bool,
) -> Tensor:
    out = image.new_empty((image.shape[0], *shape))
    if not out.numel():
        return out
    if not image.numel() or not weight.numel():
        out.zero_()
        return out if bias is None else out.add_(bias.reshape(-1, *(1,) * (out.dim() - 2)))
    backend = backend_of(out)
    (backend.convolve_transposed if is_transposed else backend.convolve)(image, weight, bias, geometry, out)
    return out


def _spread_and_convolve(
    image: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry, sizes: Sizes
) -> Tensor:
    """Compute the transpose as it is defined: a convolution over the image with zeros in it."""
    stride, padding, dilation, groups = geometry
    kernel = weight.shape[2:]
    reach = tuple(d * (k - 1) for d, k in zip(dilation, kernel, strict=True))
    wide = image.new_zeros(
        (*image.shape[:2], *((n - 1) * s + 1 for n, s in zip(image.shape[2:], stride, strict=True)))
    )
    wide[_every(stride)] = image
    ends = [(r - p, n + p - w) for r, p, n, w in zip(reach, padding, sizes, wide.shape[2:], strict=True)]
    wide = torch.constant_pad_nd(wide, [end for pair in reversed(ends) for end in pair])
    rows = weight.shape[0] // groups
    turned = weight.flip(tuple(range(2, weight.dim()))).reshape(groups, rows, weight.shape[1], *kernel)
    turned = turned.transpose(1, 2).reshape(groups * weight.shape[1], rows, *kernel)
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    return convolve(wide, turned, bias, Geometry(ones, zeros, dilation, groups))


def _is_pointwise(kernel: Sequence[int], padding: Sizes) -> bool:
    return max(kernel) == 1 and not any(padding)


def _sampled(image: Tensor, stride: Sizes) -> Tensor:
    """Return the pixels that a kernel of size one meets."""
    return image if max(stride) == 1 else image[_every(stride)]


def _every(stride: Sizes) -> Index:
    return (..., *(slice(None, None, s) for s in stride))
