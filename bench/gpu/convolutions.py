"""Convolutions of portable mode on a device: bits beside the CPU's, speed beside cuDNN.

    python bench/gpu/convolutions.py --out DIR [--quick]

Rows: `check` (outputs with other bits than on the CPU); `speed` (median ms, TFLOP/s, speed as a share of that
of cuDNN in float32 with TF32 off, which may choose its fastest algorithm).
"""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

import torch
from outcome import Part, run_part
from timing import device_ms

from samebits.portable.kernels import contractions
from samebits.portable.kernels.contractions import Geometry

Job = "Callable[[], torch.Tensor]"


class Case(NamedTuple):
    """A convolution in two dimensions.

    Args:
        samples: of the image.
        channels: of image and output.
        size: of the image, in both dimensions.
        kernel: the same of the weight.
        stride: the same.
        groups: of channels.
    """

    samples: int
    channels: tuple[int, int]
    size: int
    kernel: int
    stride: int = 1
    groups: int = 1

    @property
    def name(self) -> str:
        """Sizes in the order of a layer's arguments."""
        groups = f" groups {self.groups}" if self.groups > 1 else ""
        into, out = self.channels
        return f"{self.samples}x{into}x{self.size}x{self.size} to {out}, {self.kernel}/{self.stride}{groups}"

    @property
    def geometry(self) -> Geometry:
        """Padded so that stride 1 keeps the size."""
        two = ((self.stride,) * 2, (self.kernel // 2,) * 2, (1, 1))
        return Geometry(*two, self.groups)

    def tensors(self, device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return an image, a weight and a gradient of the output."""
        generator = torch.Generator().manual_seed(5)
        into, out = self.channels
        image = torch.randn(self.samples, into, self.size, self.size, generator=generator)
        weight = torch.randn(out, into // self.groups, self.kernel, self.kernel, generator=generator)
        after = (self.size + 2 * (self.kernel // 2) - self.kernel) // self.stride + 1
        gradient = torch.randn(self.samples, out, after, after, generator=generator)
        return image.to(device), weight.to(device), gradient.to(device)


# Layers of ResNet-18 for images of 224, of ResNet-50, of a U-Net, of a net for images of 32; a depthwise one.
SPEED = (
    Case(64, (3, 64), 224, 7, 2),
    Case(64, (64, 64), 56, 3),
    Case(64, (64, 128), 56, 3, 2),
    Case(64, (128, 128), 28, 3),
    Case(64, (256, 256), 14, 3),
    Case(64, (512, 512), 7, 3),
    Case(64, (256, 64), 56, 1),
    Case(8, (64, 64), 256, 3),
    Case(128, (32, 32), 32, 3),
    Case(64, (128, 128), 28, 3, 1, 128),
)
CHECKED = (
    Case(3, (64, 70), 9, 3),
    Case(2, (20, 130), 12, 3, 2),
    Case(2, (16, 40), 8, 2, 2),
    Case(5, (33, 9), 11, 5, 3),
    Case(2, (12, 12), 9, 3, 1, 12),
)


def ours(case: Case, tensors: tuple[torch.Tensor, ...]) -> dict[str, Job]:
    """Return portable mode's way of the convolution and of both gradients."""
    image, weight, gradient = tensors
    geometry, kernel = case.geometry, (case.kernel,) * 2
    sizes = tuple(image.shape[2:])
    return {
        "forward": lambda: contractions.convolve(image, weight, None, geometry),
        "of the image": lambda: contractions.convolve_transposed(gradient, weight, None, geometry, sizes),
        "of the weight": lambda: contractions.convolution_weight_gradient(gradient, image, kernel, geometry),
    }


def theirs(case: Case, tensors: tuple[torch.Tensor, ...]) -> dict[str, Job]:
    """Return torch's."""
    image, weight, gradient = tensors
    stride, padding, dilation, groups = case.geometry
    given = (stride, padding, dilation, False, (0, 0), groups)

    def backward(which: int) -> Job:
        mask = [number == which for number in range(3)]
        run = torch.ops.aten.convolution_backward
        return lambda: run(gradient, image, weight, None, *given, mask)[which]

    return {
        "forward": lambda: torch.nn.functional.conv2d(image, weight, None, stride, padding, 1, groups),
        "of the image": backward(0),
        "of the weight": backward(1),
    }


def check(part: Part, case: Case) -> None:
    """Compare with the CPU."""
    expected, found = (ours(case, case.tensors(device)) for device in ("cpu", "cuda"))
    for what, job in expected.items():
        one, other = job(), found[what]().cpu()
        wrong = int((one.view(torch.int32) != other.view(torch.int32)).sum())
        part.row(kind="check", what=case.name, part=what, other_bits=wrong)


def speed(part: Part, case: Case) -> None:
    """Measure each part, cuDNN first."""
    tensors = case.tensors("cuda")
    own, other = ours(case, tensors), theirs(case, tensors)
    terms = math.prod(tensors[1].shape[1:])
    for what, job in own.items():
        base, milliseconds = device_ms(other[what]), device_ms(job)
        part.row(
            kind="speed",
            what=case.name,
            part=what,
            ms=milliseconds,
            cudnn_ms=base,
            tflops=2e-9 * tensors[2].numel() * terms / milliseconds,
            of_cudnn=base / milliseconds,
        )


def measure(part: Part, arguments: argparse.Namespace) -> None:
    """Do all of it; what fails in one leaves the others."""
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    for case in CHECKED:
        part.attempt(f"check {case.name}", lambda c=case: check(part, c))
    for case in () if arguments.quick else SPEED:
        part.attempt(f"speed {case.name}", lambda c=case: speed(part, c))


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="values only")
    run_part("conv", parser, measure)


if __name__ == "__main__":
    main()
