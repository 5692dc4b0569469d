"""Convolutions on a CUDA device, tile by tile and by simple kernels: the bits of the CPU."""

from __future__ import annotations

import pytest
import torch
from device_bits import other_bits

from samebits.portable.backends import cuda_chains, cuda_convolutions
from samebits.portable.kernels import contractions
from samebits.portable.kernels.contractions import Geometry

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", autouse=True)
def _started():
    """Torch keeps what it learns of devices, which is no test's doing."""
    torch.cuda.init()
    torch.cuda.device_count()


# Channels of the input and the output in a group, sizes, kernel; stride, padding, dilation, groups; samples.
CASES = {
    "3 x 3": ((5, 40), (9, 10), (3, 3), Geometry((1, 1), (1, 1), (1, 1), 1), 3),
    "every other": ((20, 70), (9, 8), (3, 3), Geometry((2, 2), (1, 1), (1, 1), 1), 2),
    "one tap of four": ((16, 9), (8, 8), (2, 2), Geometry((2, 2), (0, 0), (1, 1), 1), 2),
    "more stride than kernel": ((9, 8), (11, 9), (2, 1), Geometry((3, 4), (1, 0), (1, 1), 1), 2),
    "dilated": ((15, 12), (13, 12), (4, 3), Geometry((2, 3), (3, 2), (3, 2), 1), 1),
    "no remainder meets": ((8, 8), (11, 12), (3, 3), Geometry((2, 2), (1, 1), (2, 2), 1), 2),
    "groups": ((4, 10), (7, 6), (3, 2), Geometry((1, 2), (1, 1), (1, 1), 3), 2),
    "depthwise": ((1, 1), (9, 8), (3, 3), Geometry((2, 1), (1, 1), (1, 1), 11), 3),
    "wide": ((3, 130), (5, 5), (3, 3), Geometry((1, 1), (0, 0), (1, 1), 1), 2),
    "long": ((9, 33), (40,), (9,), Geometry((4,), (4,), (1,), 1), 3),
    "volume": ((6, 16), (5, 6, 7), (2, 3, 3), Geometry((1, 2, 3), (1, 1, 1), (2, 1, 1), 1), 2),
    "pointwise": ((140, 40), (6, 5), (1, 1), Geometry((1, 1), (0, 0), (1, 1), 1), 2),
}


def tensors(case, dtype):
    """The image, the weight, the bias, and the weight of the transpose."""
    (depth, rows), sizes, kernel, geometry, samples = CASES[case]
    groups = geometry.groups
    image = torch.randn(samples, groups * depth, *sizes, dtype=dtype)
    image *= torch.exp2(torch.randint(-20, 20, image.shape).to(dtype))
    weight = torch.randn(groups * rows, depth, *kernel, dtype=dtype)
    return (
        image,
        weight,
        torch.randn(groups * rows, dtype=dtype),
        torch.randn(groups * depth, rows, *kernel, dtype=dtype),
    )


def all_of(case):
    """A convolution, its gradients, and the transposed one of as large an image."""
    _, sizes, kernel, geometry, _ = CASES[case]

    def run(image, weight, bias, other):
        out = contractions.convolve(image, weight, bias, geometry)
        grown = tuple(
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(sizes, *geometry[:3], kernel, strict=True)
        )
        slope = out.flip(0)
        return [
            out,
            contractions.convolve(image, weight, None, geometry),
            contractions.convolve_transposed(slope, weight, None, geometry, sizes),
            contractions.convolve_transposed(image, other, bias, geometry, grown),
            contractions.convolution_weight_gradient(slope, image, kernel, geometry),
        ]

    return run


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_convolutions(case, dtype):
    """On a device with more multiprocessors than there are tiles."""
    assert other_bits(all_of(case), *tensors(case, dtype)) == []


@pytest.mark.parametrize("shape", cuda_convolutions.CONV_SHAPES, ids=lambda shape: str(shape.rows))
@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_tiles(case, share, shape, monkeypatch):
    """Each tile, where no thread blocks share a sum, and where they do."""
    monkeypatch.setattr(cuda_convolutions, "CONV_SHAPES", (shape,))
    monkeypatch.setattr(cuda_convolutions, "are_few", lambda tiles, processors: share)

    assert other_bits(all_of(case), *tensors(case, torch.float32)) == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", ["every other", "depthwise"])
def test_chains_in_portions(case, dtype, monkeypatch):
    """The sum of a weight's gradient goes on where the last portion ended."""
    monkeypatch.setattr(cuda_chains, "_MOST_BYTES", 1)

    assert other_bits(all_of(case), *tensors(case, dtype)) == []


@pytest.mark.parametrize("value", [torch.inf, torch.nan])
@pytest.mark.parametrize("case", ["every other", "one tap of four", "dilated", "depthwise", "long"])
def test_endless_weights(case, value):
    """An infinite weight makes NaN of the zeros between samples that a stride puts there, and around them."""
    image, weight, bias, other = tensors(case, torch.float32)
    for each in (weight, other):
        each.view(-1)[each.numel() // 2] = value

    assert other_bits(all_of(case), image, weight, bias, other) == []
