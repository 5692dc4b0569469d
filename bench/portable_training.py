"""What a training step costs in portable mode, beside plain torch, in turns in one process.

    python bench/portable_training.py [--only NAME ...] [--threads N] [--rounds N]

A round is a block of steps of plain torch, one in portable mode, and one in a dispatch mode that only calls
each op: what any such mode costs. Ratios are those of the fastest blocks; that of the medians is beside.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

import samebits
from samebits.portable.backends.library import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    Step = Callable[[], None]

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def line_fit() -> Step:
    """The example: a 1-100-1 network, gradient descent by hand."""
    x = torch.arange(8, dtype=torch.float32).unsqueeze(1)
    y = 10 * x
    model = nn.Sequential(nn.Linear(1, 100), nn.ReLU(), nn.Linear(100, 1))
    loss_function = nn.MSELoss(reduction="sum")

    def step() -> None:
        loss = loss_function(model(x), y)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(1e-4 * parameter.grad)

    return step


def mlp() -> Step:
    """784-1024-1024-10, batch 256, Adam."""
    model = nn.Sequential(
        nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )
    x, y = torch.randn(256, 784), torch.randint(0, 10, (256,))
    return usual(model, torch.optim.Adam(model.parameters()), lambda: functional.cross_entropy(model(x), y))


def gpt() -> Step:
    """A GPT of 3.7 million parameters, batch 8 of 128 tokens, AdamW."""
    module = example("char_gpt")
    model = module.GPT(module.GPTConfig(vocabulary=96, context=128, layers=6, heads=7, width=224))
    tokens = torch.randint(0, 96, (8, 129))
    optimizer = torch.optim.AdamW(model.parameters())
    return usual(
        model,
        optimizer,
        lambda: functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()),
    )


class Block(nn.Module):
    """The basic block of a ResNet."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm_one, self.norm_two = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        same = stride == 1 and before == after
        self.cut = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of both ways."""
        y = self.norm_two(self.two(functional.relu(self.norm_one(self.one(x)))))
        return functional.relu(y + self.cut(x))


def resnet18() -> Step:
    """ResNet-18 as it is used on CIFAR-10: 32x32 images, batch 32, SGD with momentum."""
    sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
    sizes += [(128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        *(Block(*size) for size in sizes),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip
    x, y = torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    return usual(model, optimizer, lambda: functional.cross_entropy(model(x), y))


def lstm() -> Step:
    """Two layers of width 256 over 64 sequences of 30 steps, Adam."""
    layers, head = nn.LSTM(64, 256, num_layers=2, batch_first=True), nn.Linear(256, 10)
    model = nn.ModuleList([layers, head])
    x, y = torch.randn(64, 30, 64), torch.randint(0, 10, (64,))
    optimizer = torch.optim.Adam(model.parameters())
    return usual(model, optimizer, lambda: functional.cross_entropy(head(layers(x)[0][:, -1]), y))


def gcn() -> Step:
    """Three graph convolutions of width 128 over 3000 nodes and 20000 edges, by `index_add`, Adam."""
    layers = nn.ModuleList([nn.Linear(64, 128), nn.Linear(128, 128), nn.Linear(128, 7)])
    source, target = torch.randint(0, 3000, (2, 20000))
    x, y = torch.randn(3000, 64), torch.randint(0, 7, (3000,))

    def loss() -> torch.Tensor:
        h = x
        for number, layer in enumerate(layers):
            h = layer(h)
            h = torch.zeros_like(h).index_add(0, target, h[source]) + h
            h = functional.relu(h) if number < 2 else h
        return functional.cross_entropy(h, y)

    return usual(layers, torch.optim.Adam(layers.parameters()), loss)


class UNet(nn.Module):
    """Two levels down and up, with group norm."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [(1, 32), (32, 64), (64, 64), (128, 32), (64, 32)]
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(8, after), nn.SiLU())
            for before, after in sizes
        )
        self.out = nn.Conv2d(32, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """An image of the same size."""
        one = self.blocks[0](x)
        two = self.blocks[1](functional.avg_pool2d(one, 2))
        low = self.blocks[2](functional.avg_pool2d(two, 2))
        up = self.blocks[3](torch.cat([functional.interpolate(low, scale_factor=2), two], 1))
        return self.out(self.blocks[4](torch.cat([functional.interpolate(up, scale_factor=2), one], 1)))


def unet() -> Step:
    """A small U-Net, 16 images of 32x32, AdamW."""
    model = UNet()
    x, y = torch.randn(2, 16, 1, 32, 32)
    return usual(model, torch.optim.AdamW(model.parameters()), lambda: functional.mse_loss(model(x), y))


def vit_model() -> nn.Module:
    """A vision transformer of four layers, width 192, for images of 32x32 in patches of 4x4."""
    layer = nn.TransformerEncoderLayer(192, 3, 768, dropout=0.0, activation="gelu", batch_first=True)
    return nn.Sequential(
        nn.Conv2d(3, 192, 4, 4), nn.Flatten(2), Transposed(), nn.TransformerEncoder(layer, 4), Mean(),
        nn.Linear(192, 10),
    )  # fmt: skip


class Transposed(nn.Module):
    """Swaps the last two dimensions."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Swap."""
        return x.transpose(1, 2)


class Mean(nn.Module):
    """The mean of the tokens."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mean."""
        return x.mean(1)


def vit() -> Step:
    """The vision transformer, batch 32, AdamW."""
    model = vit_model()
    x, y = torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))
    optimizer = torch.optim.AdamW(model.parameters())
    return usual(model, optimizer, lambda: functional.cross_entropy(model(x), y))


def mlp_of_one() -> Step:
    """Inference of one sample: 784-1024-1024-10."""
    return inference(
        nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)),
        torch.randn(1, 784),
    )


def vit_of_one() -> Step:
    """Inference of one image by the vision transformer."""
    return inference(vit_model(), torch.randn(1, 3, 32, 32))


def convolutions_of_one() -> Step:
    """Inference of one image: the blocks of ResNet-18 that have 64 channels."""
    return inference(
        nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1), Block(64, 64, 1), Block(64, 64, 1)),
        torch.randn(1, 3, 32, 32),
    )


def inference(model: nn.Module, x: torch.Tensor) -> Step:
    """Forward, without gradients."""
    model.eval()

    def step() -> None:
        with torch.no_grad():
            model(x)

    return step


def usual(model: nn.Module, optimizer: torch.optim.Optimizer, loss_of: Callable[[], torch.Tensor]) -> Step:
    """Zero the gradients, backward, update."""
    model.train()

    def step() -> None:
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()

    return step


def example(name: str) -> ModuleType:
    """A module of examples/."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TRAININGS = {
    "line_fit": (line_fit, 100, 1.25),
    "mlp": (mlp, 4, 1.1),
    "gpt": (gpt, 1, 1.1),
    "resnet18": (resnet18, 1, 1.1),
    "lstm": (lstm, 2, 1.1),
    "gcn": (gcn, 4, 1.1),
    "unet": (unet, 2, 1.1),
    "vit": (vit, 1, 1.1),
    "mlp, one sample": (mlp_of_one, 100, 1.2),
    "vit, one image": (vit_of_one, 20, 1.2),
    "convolutions, one image": (convolutions_of_one, 20, 1.2),
}


class CallingMode(TorchDispatchMode):
    """Calls each op, and nothing else."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # as portable mode has it: a wrapper of each call takes time

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Called by torch for each op."""
        return func(*args, **(kwargs or {}))


def block_seconds(step: Step, count: int) -> float:
    """Mean time of a step of a block."""
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def measure(name: str, rounds: int) -> None:
    """Print the line of one training."""
    build, count, target = TRAININGS[name]
    torch.manual_seed(1)
    contexts = (contextlib.nullcontext, samebits.portable, CallingMode)
    steps = [build() for _ in contexts]
    found: list[list[float]] = [[] for _ in contexts]
    for number in range(rounds + 1):
        for step, context, times in zip(steps, contexts, found, strict=True):
            with context():
                seconds = block_seconds(step, count)
            if number:  # the first is for caches
                times.append(seconds)
    best, middle = (f(found[1]) / f(found[0]) for f in (min, statistics.median))
    verdict = "met" if best <= target else "MISSED"
    plain, ours, calling = (1000 * min(times) for times in found)
    ratios = f"{best:8.2f}{middle:9.2f}{calling / plain:11.2f}{target:9.2f}"
    print(f"{name:24}{plain:12.3f}{ours:12.3f}{ratios}  {verdict}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=TRAININGS, default=list(TRAININGS), metavar="NAME")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("--rounds", type=int, default=7, metavar="N")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    kernels = load()
    print(
        f"torch {torch.__version__}, kernels {kernels.isa if kernels else 'reference'}, "
        f"{options.threads} threads, load {os.getloadavg()[0]:.1f}"
    )
    ratios = f"{'ratio':>8}{'median':>9}{'only mode':>11}{'target':>9}"
    print(f"{'ms a step':24}{'plain':>12}{'portable':>12}{ratios}")
    for name in options.only:
        measure(name, options.rounds)


if __name__ == "__main__":
    main()
