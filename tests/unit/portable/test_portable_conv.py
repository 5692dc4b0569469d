"""Convolution kernels against the reference, bit for bit."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import pytest
import torch

from samebits.portable.backends.library import load
from samebits.portable.backends.reference import ReferenceBackend
from samebits.portable.kernels import contractions as kernels
from samebits.portable.kernels.contractions import Geometry
from samebits.portable.reference import contractions as reference

if TYPE_CHECKING:
    from torch import Tensor

SPECIAL = (-0.0, 0.0, 1e-42, -1e-40, 3e38, float("inf"), float("-inf"), float("nan"))


class Case(NamedTuple):
    """Inputs of one convolution."""

    image: Tensor
    weight: Tensor
    bias: Tensor
    gradient: Tensor
    geometry: Geometry

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of the image."""
        return tuple(self.image.shape[2:])

    @property
    def kernel(self) -> tuple[int, ...]:
        """Sizes of the kernel."""
        return tuple(self.weight.shape[2:])


def make_case(seed: int, dtype: torch.dtype = torch.float32, dims: int | None = None) -> Case:
    """A random convolution; float64, whose reference is slow, gets a small one."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    dims = dims or draw.choice((1, 2, 2, 3))
    small = dims == 3 or dtype == torch.float64
    groups, depth = draw.choice((1, 1, 2, 3)), draw.choice((1, 2, 3) if small else (1, 3, 7, 16, 20))
    rows, samples = draw.choice((1, 2) if small else (1, 2, 7, 17)), draw.randint(1, 2 if small else 4)
    each = [tuple(draw.randint(*ends) for _ in range(dims)) for ends in ((1, 3), (1, 3), (1, 2), (0, 3))]
    kernel, stride, dilation, padding = each
    geometry = Geometry(stride, padding, dilation, groups)
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    sizes = [max(r, draw.choice((3, 4) if small else (4, 7, 8, 16, 17))) for r in reach]
    image = torch.randn(samples, groups * depth, *sizes, dtype=dtype)
    weight = torch.randn(groups * rows, depth, *kernel, dtype=dtype)
    out = torch.conv1d if dims == 1 else torch.conv2d if dims == 2 else torch.conv3d
    shape = out(image, weight, None, stride, padding, dilation, groups).shape
    return Case(
        image, weight, torch.randn(groups * rows, dtype=dtype), torch.randn(shape, dtype=dtype), geometry
    )


def sprinkle(tensor: Tensor, seed: int, values: tuple[float, ...] = SPECIAL) -> Tensor:
    """A copy with special values in some places."""
    draw = random.Random(seed)
    flat = tensor.flatten().clone()
    for _ in range(max(1, flat.numel() // 20)):
        flat[draw.randrange(flat.numel())] = draw.choice(values)
    return flat.reshape(tensor.shape)


def bits(tensor: Tensor) -> list[int]:
    """The bits of the elements, every NaN as the same one."""
    plain = torch.where(tensor.isnan(), torch.full_like(tensor, float("nan")), tensor).contiguous()
    return plain.view(torch.int32 if tensor.dtype == torch.float32 else torch.int64).flatten().tolist()


def wanted(case: Case) -> list[Tensor]:
    """What the reference gives: output, gradients of input and weight."""
    image, weight, bias, gradient, geometry = case
    ones = (1,) * len(case.sizes)
    return [
        torch.from_numpy(reference.convolve(image.numpy(), weight.numpy(), geometry))
        + bias.reshape(-1, *ones),
        torch.from_numpy(
            reference.convolve_transposed(gradient.numpy(), weight.numpy(), geometry, case.sizes)
        ),
        torch.from_numpy(
            reference.convolution_weight_gradient(gradient.numpy(), image.numpy(), case.kernel, geometry)
        ),
    ]


def computed(case: Case) -> list[Tensor]:
    """The same from the kernels."""
    image, weight, bias, gradient, geometry = case
    return [
        kernels.convolve(image, weight, bias, geometry),
        kernels.convolve_transposed(gradient, weight, None, geometry, case.sizes),
        kernels.convolution_weight_gradient(gradient, image, case.kernel, geometry),
    ]


def check(case: Case) -> None:
    """All results are the reference's, with one thread and two."""
    expected = wanted(case)
    for threads in (1, 2):
        load().set_threads(threads)  # type: ignore[union-attr]
        for found, want in zip(computed(case), expected, strict=True):
            assert found.shape == want.shape
            assert bits(found) == bits(want), (threads, case.geometry, case.image.shape, case.weight.shape)


@pytest.mark.parametrize("seed", range(20))
def test_float32_is_the_references(seed: int, isa: str) -> None:
    check(make_case(seed))


@pytest.mark.parametrize("seed", range(6))
def test_float64_is_the_references(seed: int, isa: str) -> None:
    check(make_case(100 + seed, torch.float64))


@pytest.mark.parametrize("seed", range(8))
def test_special_values_are_the_references(seed: int, isa: str) -> None:
    case = make_case(200 + seed)
    parts = (case.image, case.weight, case.bias, case.gradient)
    check(Case(*(sprinkle(part, seed + i) for i, part in enumerate(parts)), case.geometry))


@pytest.mark.parametrize("values", [(0.0, -0.0), (1e-42, -1e-45, -0.0), (float("inf"), -0.0)])
def test_holes_of_a_stride_may_be_left_out(values: tuple[float, ...], isa: str) -> None:
    torch.manual_seed(3)
    geometry = Geometry((2, 3), (1, 0), (1, 2), 1)
    gradient = sprinkle(torch.randn(2, 40, 5, 4) * 1e-20, 1, (0.0, -0.0, 1e-44))
    weight = sprinkle(torch.randn(40, 6, 3, 3) * 1e-22, 2, values)
    want = reference.convolve_transposed(gradient.numpy(), weight.numpy(), geometry, (10, 14))
    assert bits(kernels.convolve_transposed(gradient, weight, None, geometry, (10, 14))) == bits(
        torch.from_numpy(want)
    )


@pytest.mark.parametrize("channels", [1, 16, 33])
def test_a_group_for_each_channel(channels: int, isa: str) -> None:
    torch.manual_seed(4)
    geometry = Geometry((1, 1), (1, 1), (1, 1), channels)
    image, weight = torch.randn(3, channels, 9, 16), torch.randn(2 * channels, 1, 3, 3)
    check(Case(image, weight, torch.randn(2 * channels), torch.randn(3, 2 * channels, 9, 16), geometry))
    check(Case(image, weight[:channels], torch.randn(channels), torch.randn(3, channels, 9, 16), geometry))


@pytest.mark.parametrize(("rows", "depth", "kernel"), [(64, 1, (3, 3)), (14, 1, (7, 5)), (40, 2, (5, 2))])
def test_a_chain_that_ends_as_far_in_the_weight_as_in_the_sum(
    rows: int, depth: int, kernel: tuple[int, int], isa: str
) -> None:
    """The terms of the gradient of an image with one or two channels turn back in the weight in between."""
    torch.manual_seed(12)
    image, weight = torch.randn(2, depth, 7, 6), torch.randn(rows, depth, *kernel)
    gradient = torch.randn(2, rows, 10 - kernel[0], 9 - kernel[1])
    check(Case(image, weight, torch.randn(rows), gradient, Geometry((1, 1), (1, 1), (1, 1), 1)))


def test_large_images_and_many_samples(isa: str) -> None:
    if isa == "scalar":
        pytest.skip("slow")
    torch.manual_seed(5)
    geometry = Geometry((1, 1), (1, 1), (1, 1), 1)
    for samples, channels, rows, size in ((1, 3, 5, 65), (9, 20, 40, 4), (2, 33, 18, 16)):
        image, weight = torch.randn(samples, channels, size, size), torch.randn(rows, channels, 3, 3)
        check(Case(image, weight, torch.randn(rows), torch.randn(samples, rows, size, size), geometry))


def test_strides_of_the_inputs_do_not_matter() -> None:
    case = make_case(7, dims=2)
    plain = computed(case)
    turned = [
        part.transpose(0, -1).contiguous().transpose(0, -1)
        for part in (case.image, case.weight, case.gradient)
    ]
    other = computed(case._replace(image=turned[0], weight=turned[1], gradient=turned[2]))
    assert [bits(part) for part in plain] == [bits(part) for part in other]


def test_a_sample_alone_has_the_bits_it_has_among_others() -> None:
    torch.manual_seed(6)
    image, weight = torch.randn(9, 5, 7, 7), torch.randn(11, 5, 3, 3)
    geometry = Geometry((1, 1), (1, 1), (1, 1), 1)
    together = kernels.convolve(image, weight, None, geometry)
    for i in range(9):
        assert bits(kernels.convolve(image[i : i + 1], weight, None, geometry)) == bits(together[i : i + 1])


def test_nothing_to_compute() -> None:
    geometry = Geometry((1,), (1,), (1,), 1)
    weight, bias = torch.randn(3, 2, 3), torch.randn(3)
    assert kernels.convolve(torch.empty(0, 2, 5), weight, bias, geometry).shape == (0, 3, 5)
    empty = torch.empty(2, 0, 5)
    out = kernels.convolve(empty, torch.empty(3, 0, 3), bias, geometry)
    assert torch.equal(out, bias.reshape(3, 1).expand(2, 3, 5))
    gradient = torch.empty(0, 3, 5)
    assert not kernels.convolution_weight_gradient(gradient, torch.empty(0, 2, 5), (3,), geometry).any()


def test_the_reference_stands_in_for_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(8, dims=2)
    native = computed(case)
    monkeypatch.setattr(kernels, "backend_of", lambda _: ReferenceBackend())
    assert [bits(part) for part in computed(case)] == [bits(part) for part in native]
