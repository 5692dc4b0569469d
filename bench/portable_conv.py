"""Convolutions of portable mode against plain torch: forward and backward, in one run.

    python bench/portable_conv.py [--threads 2] [--rounds 7]

Prints, for each shape, milliseconds of plain torch and the ratio of portable mode to it: the forward, the
gradients of input and weight apart, and forward with all gradients. Minima of interleaved rounds.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812

from samebits.portable._dispatch import PortableMode

if TYPE_CHECKING:
    from collections.abc import Callable


class Shape(NamedTuple):
    """Of one convolution."""

    name: str
    samples: int
    channels: int
    out: int
    size: int
    kernel: int
    stride: int = 1
    groups: int = 1


SHAPES = (
    Shape("first 3x3", 32, 3, 64, 32, 3),
    Shape("3x3 64 32x32", 32, 64, 64, 32, 3),
    Shape("3x3 64-128 /2", 32, 64, 128, 32, 3, 2),
    Shape("3x3 128 16x16", 32, 128, 128, 16, 3),
    Shape("3x3 256 8x8", 32, 256, 256, 8, 3),
    Shape("3x3 512 4x4", 32, 512, 512, 4, 3),
    Shape("5x5 32-64 16x16", 32, 32, 64, 16, 5),
    Shape("5x5 64 32x32", 8, 64, 64, 32, 5),
    Shape("1x1 64-128 /2", 32, 64, 128, 32, 1, 2),
    Shape("1x1 256 8x8", 32, 256, 256, 8, 1),
    Shape("1x1 64-256 32x32", 8, 64, 256, 32, 1),
    Shape("3x3 56x56 64", 4, 64, 64, 56, 3),
    Shape("7x7 stem /2", 2, 3, 64, 224, 7, 2),
    Shape("depthwise 3x3", 32, 128, 128, 16, 3, 1, 128),
    Shape("depthwise 28x28", 16, 144, 144, 28, 3, 1, 144),
    Shape("depthwise 14x14", 16, 384, 384, 14, 3, 1, 384),
    Shape("depthwise 7x7", 16, 960, 960, 7, 3, 1, 960),
    Shape("grouped 3x3", 32, 128, 128, 16, 3, 1, 32),
    Shape("LeNet 5x5", 64, 6, 16, 14, 5),
)


def measure(shape: Shape, rounds: int) -> dict[str, tuple[float, float]]:
    """Milliseconds of plain torch and of portable mode, by part."""
    torch.manual_seed(0)
    image = torch.randn(shape.samples, shape.channels, shape.size, shape.size)
    weight = torch.randn(shape.out, shape.channels // shape.groups, shape.kernel, shape.kernel)
    bias = torch.randn(shape.out)
    padding = shape.kernel // 2

    def forward() -> torch.Tensor:
        return F.conv2d(image, weight, bias, shape.stride, padding, 1, shape.groups)

    gradient = torch.randn_like(forward())

    def gradients(mask: list[bool]) -> Callable[[], object]:
        two = [shape.stride, shape.stride], [padding, padding], [1, 1], False, [0, 0], shape.groups, mask
        return lambda: torch.ops.aten.convolution_backward(gradient, image, weight, [shape.out], *two)

    def both() -> None:
        forward()
        gradients([True, True, True])()

    parts: dict[str, Callable[[], object]] = {
        "forward": forward,
        "input": gradients([True, False, False]),
        "weight": gradients([False, True, False]),
        "all": both,
    }
    return {name: pair(call, rounds) for name, call in parts.items()}


def pair(call: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The shortest of some rounds, plain and in portable mode by turns, in milliseconds."""
    plain, ours = [], []
    for _ in range(rounds + 1):
        plain.append(seconds(call))
        with PortableMode():
            ours.append(seconds(call))
    return min(plain[1:]) * 1e3, min(ours[1:]) * 1e3


def seconds(call: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"{'shape':20} {'forward':>16} {'input':>16} {'weight':>16} {'all':>16}")
    for shape in SHAPES:
        if options.only in shape.name:
            found = measure(shape, options.rounds).values()
            print(f"{shape.name:20}", *(f"{plain:8.2f} x{ours / plain:6.2f}" for plain, ours in found))


if __name__ == "__main__":
    main()
