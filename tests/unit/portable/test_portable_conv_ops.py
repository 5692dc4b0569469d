"""Convolution handlers against plain torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from opinfo import check_op

from samebits.errors import SamebitsError
from samebits.portable._dispatch import PortableMode
from samebits.portable._registry import declared
from samebits.portable.ops import convolutions

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = [
    *(f"nn.functional.conv{n}d" for n in (1, 2, 3)),
    *(f"nn.functional.conv_transpose{n}d" for n in (1, 2, 3)),
    "nn.functional.unfold",
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_torchs_own_samples_agree(name: str, dtype: torch.dtype) -> None:
    assert check_op(name, dtype) > 0


def both(call: Callable[..., Any], *inputs: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Output and gradients, of plain torch and in portable mode."""

    def run() -> list[torch.Tensor]:
        leaves = [x.detach().clone(memory_format=torch.preserve_format).requires_grad_() for x in inputs]
        out = call(*leaves)
        seed = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).to(out.dtype).reshape(out.shape)
        return [out, *torch.autograd.grad(out, leaves, seed)]

    plain = run()
    with PortableMode():
        return plain, run()


def assert_close(call: Callable[..., Any], *inputs: torch.Tensor, tolerance: float = 1e-9) -> None:
    """Portable mode is near plain torch, with the same sizes and strides."""
    for one, other in zip(*both(call, *inputs), strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        torch.testing.assert_close(other, one, rtol=tolerance, atol=tolerance)


def randoms(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(shape, dtype=dtype) for shape in shapes]


@pytest.mark.parametrize(
    ("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (3, 2, 2), ((1, 2), (0, 1), (2, 1))]
)
def test_fold(stride: Any, padding: Any, dilation: Any) -> None:
    columns = F.unfold(torch.ones(2, 3, 9, 8, dtype=torch.float64), (3, 2), dilation, padding, stride)
    (values,) = randoms(tuple(columns.shape))
    assert_close(lambda x: F.fold(x, (9, 8), (3, 2), dilation, padding, stride), values)
    assert_close(lambda x: F.fold(x[0], (9, 8), (3, 2), dilation, padding, stride), values)


def test_fold_of_wrong_sizes_is_torchs_error() -> None:
    with PortableMode(), pytest.raises(RuntimeError, match="blocks"):
        F.fold(torch.zeros(1, 12, 5), (4, 4), 2)


def test_over_time_batch_channel() -> None:
    assert_close(lambda x, w, b: torch.conv_tbc(x, w, b, 1), *randoms((5, 2, 3), (3, 3, 4), (4,)))


def test_torchs_slow_convolutions() -> None:
    nn = torch._C._nn
    image, weight = randoms((2, 3, 7, 8), (3, 3, 3, 2))
    assert_close(lambda x, w: nn.thnn_conv2d(x, w, (3, 2), None, (2, 1), (1, 0)), image, weight)
    assert_close(lambda x, w: nn.slow_conv_dilated2d(x, w, (3, 2), None, 1, 1, 2), image, weight)
    assert_close(lambda x, w: nn.slow_conv_transpose2d(x, w, (3, 2), None, 2, 1, 1), image, weight)
    assert_close(lambda x, w: nn.slow_conv3d(x, w, (3, 2, 2)), *randoms((2, 3, 4, 5, 6), (2, 3, 3, 2, 2)))


def test_output_padding_beyond_the_stride() -> None:
    image, weight, bias = randoms((2, 4, 5, 6), (4, 2, 3, 3), (4,))
    assert_close(lambda x, w, b: F.conv_transpose2d(x, w, b, 1, 1, 1, 2, 2), image, weight, bias)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_rounded_once(dtype: torch.dtype) -> None:
    image, weight, bias = randoms((2, 3, 6, 7), (4, 3, 3, 3), (4,), dtype=dtype)
    with PortableMode():
        wide = F.conv2d(image.float(), weight.float(), bias.float(), padding=1)
        narrow = F.conv2d(image, weight, bias, padding=1)
    assert torch.equal(narrow, wide.to(dtype))


def test_formats_are_torchs() -> None:
    image, weight = randoms((2, 3, 6, 7), (4, 3, 3, 3))
    last = torch.channels_last
    for one in (image, image.to(memory_format=last)):
        for other in (weight, weight.to(memory_format=last)):
            for plain, ours in zip(*both(F.conv2d, one, other), strict=True):
                assert plain.stride() == ours.stride()


def test_gradients_of_gradients() -> None:
    def twice(image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        out = F.conv2d(image, weight, stride=2, padding=1)
        one, other = torch.autograd.grad(out * out, (image, weight), out, create_graph=True)
        return torch.cat([(one * one).flatten(), (other * other).flatten()])

    assert_close(twice, *randoms((1, 2, 5, 5), (3, 2, 3, 3)))


def test_what_does_not_fit_is_torchs_error() -> None:
    image, weight = randoms((1, 2, 5, 5), (3, 4, 3, 3))
    with PortableMode():
        with pytest.raises(RuntimeError, match="to have 4 channels, but got 2 channels"):
            F.conv2d(image, weight)
        with pytest.raises(RuntimeError, match="Kernel size can't be greater than actual input size"):
            F.conv2d(image, torch.zeros(3, 2, 7, 7, dtype=torch.float64))
        with pytest.raises((RuntimeError, SamebitsError)):
            F.conv2d(image.float(), weight[:, :2])


def test_every_name_is_an_op() -> None:
    for name in declared(convolutions):
        packet, _, overload = name.partition(".")
        assert hasattr(getattr(torch.ops.aten, packet), overload or "default")
