"""Matrix products, and convolutions: matrix products over columns that are written out in full.

A product is ascending fma chains in blocks of 128, whose sums are added in order ("Contractions" in
docs/reference/portable-numerics.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from samebits.portable.reference.fma import fma

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array

K_BLOCK = 128
Sizes = tuple[int, ...]
Shape = tuple[Sizes, Sizes, Sizes, int]
"""Stride, padding, dilation, groups."""


def gemm(a: Array, b: Array) -> Array:
    """Return `a @ b`.

    Args:
        a: (..., m, k), float32 or float64.
        b: (..., k, n), the same dtype and leading sizes.

    Returns:
        (..., m, n).
    """
    shape = (*a.shape[:-1], b.shape[-1])
    total = np.zeros(shape, a.dtype)
    for start in range(0, a.shape[-1], K_BLOCK):
        chain = np.zeros(shape, a.dtype)
        for k in range(start, min(start + K_BLOCK, a.shape[-1])):
            chain = fma(a[..., :, k, None], b[..., None, k, :], chain)
        with np.errstate(all="ignore"):
            total = total + chain
    return total


def columns(image: Array, kernel: Sizes, geometry: Shape, sizes: Sizes) -> Array:
    """Return the inputs of each output position, with zeros from the padding.

    Args:
        image: (samples, channels, sizes...).
        kernel: sizes of the kernel.
        geometry: of the convolution.
        sizes: of its output.

    Returns:
        (samples, groups, channels of a group · taps, positions).
    """
    stride, padding, dilation, groups = geometry
    padded = np.pad(image, [(0, 0), (0, 0), *((p, p) for p in padding)])
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=tuple(range(2, image.ndim)))
    met: Any = (..., *(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))
    windows = windows[met]
    within: Any = (slice(None), slice(None), *(slice(n) for n in sizes))
    windows = windows[within]
    n = len(kernel)
    windows = np.moveaxis(windows, range(-n, 0), range(2, 2 + n))
    return windows.reshape(image.shape[0], groups, -1, math.prod(sizes))


def convolve(image: Array, weight: Array, geometry: Shape) -> Array:
    """Compute a convolution, without the bias."""
    stride, padding, dilation, groups = geometry
    kernel = weight.shape[2:]
    sizes = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(image.shape[2:], padding, dilation, kernel, stride, strict=True)
    )
    rows = weight.reshape(1, groups, weight.shape[0] // groups, -1)
    result = gemm(rows, columns(image, kernel, geometry, sizes))
    return result.reshape(image.shape[0], weight.shape[0], *sizes)


def convolve_transposed(image: Array, weight: Array, geometry: Shape, sizes: Sizes) -> Array:
    """Compute the transpose of a convolution of an input of these sizes, without the bias.

    Args:
        image: the gradient of the output, or the input of what torch calls a transposed convolution.
        weight: (channels of the image, output channels / groups, kernel...).
        geometry: of the convolution that this is the transpose of.
        sizes: of the result.
    """
    stride, padding, dilation, groups = geometry
    kernel = weight.shape[2:]
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    spread = np.zeros((*image.shape[:2], *(n + r for n, r in zip(sizes, reach, strict=True))), image.dtype)
    for index in np.ndindex(image.shape[2:]):
        at = tuple(i * s + r - p for i, s, r, p in zip(index, stride, reach, padding, strict=True))
        if all(0 <= a < n for a, n in zip(at, spread.shape[2:], strict=True)):
            target: Any = (..., *at)
            source: Any = (..., *index)
            spread[target] = image[source]
    turned = np.flip(weight, tuple(range(2, weight.ndim)))
    turned = turned.reshape(groups, weight.shape[0] // groups, weight.shape[1], *kernel)
    turned = np.swapaxes(turned, 1, 2).reshape(-1, weight.shape[0] // groups, *kernel)
    plain = (1,) * len(kernel), (0,) * len(kernel), dilation, groups
    return convolve(spread, turned, plain)


def convolution_weight_gradient(gradient: Array, image: Array, kernel: Sizes, geometry: Shape) -> Array:
    """Return the gradient of the weight, over (sample, position)."""
    groups = geometry[3]
    inputs = columns(image, kernel, geometry, tuple(gradient.shape[2:]))
    outputs = gradient.reshape(gradient.shape[0], groups, gradient.shape[1] // groups, -1)
    a = np.moveaxis(outputs, 0, 2).reshape(groups, outputs.shape[2], -1)
    b = np.moveaxis(inputs, 0, 2).reshape(groups, inputs.shape[2], -1)
    result = gemm(a, np.swapaxes(b, -1, -2))
    return result.reshape(gradient.shape[1], image.shape[1] // groups, *kernel)
