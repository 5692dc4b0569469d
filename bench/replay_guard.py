"""What a guard costs: the same training without one and with `every` of 1, 10 and 100, side by side.

Each round runs 100 steps of every kind in turn; a ratio is of the times of one round. The model is small, so
that what the guard itself does weighs more than it does in a large training.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import time
from typing import TYPE_CHECKING

import torch

import samebits
from samebits import ReplayGuard

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 100
EVERY = (1, 10, 100)


def mlp() -> tuple[torch.nn.Module, torch.Tensor]:
    """Two hidden layers of 256: 0.2 million parameters."""
    nn = torch.nn
    layers = (
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
    )
    return nn.Sequential(*layers), torch.randn(128, 256)


def transformer() -> tuple[torch.nn.Module, torch.Tensor]:
    """Two encoder layers of width 64 over 32 positions."""
    layer = torch.nn.TransformerEncoderLayer(64, 4, 256, dropout=0.1, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.randn(8, 32, 64)


def trainer(
    build: Callable[[], tuple[torch.nn.Module, torch.Tensor]],
    every: int,
    form: str,
    clock: Callable[[], float],
) -> Callable[[], float]:
    """A function that trains 100 steps and returns the seconds; `every` of 0 is without a guard."""
    torch.manual_seed(0)
    model, batch = build()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)

    def step(x: torch.Tensor) -> torch.Tensor:
        loss = model(x).square().mean()
        loss.backward()
        return loss

    call: Callable[..., torch.Tensor] = lambda function, x: function(x)  # noqa: E731
    if every:
        guard = ReplayGuard(model, every=every)
        if form == "watch":
            guard.watch(optimizer)
        else:
            call = guard

    def train() -> float:
        start = clock()
        for _ in range(STEPS):
            optimizer.zero_grad()
            call(step, batch)
            optimizer.step()
        return clock() - start

    return train


def main() -> None:
    """Print a table of ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--cpu-time", action="store_true", help="processor time, which other load disturbs less"
    )
    options = parser.parse_args()
    rounds, clock = options.rounds, time.process_time if options.cpu_time else time.perf_counter
    print(f"samebits {samebits.__version__}, torch {torch.__version__}, {torch.get_num_threads()} thread(s)")
    with contextlib.suppress(OSError):
        print(f"load of the machine at the beginning: {os.getloadavg()[0]:.1f}")
    print(f"{'':24}{'plain, ms/step':>16}" + "".join(f"{f'every={every}':>22}" for every in EVERY))
    for name, build in (("mlp", mlp), ("transformer", transformer)):
        for form in ("call", "watch"):
            kinds = {every: trainer(build, every, form, clock) for every in (0, *EVERY)}
            for train in kinds.values():
                train()  # warm up
            times = [{every: train() for every, train in kinds.items()} for _ in range(rounds)]
            plain = statistics.median(each[0] for each in times) / STEPS * 1e3
            shown = ""
            for every in EVERY:
                ratios = sorted(each[every] / each[0] for each in times)
                shown += f"{f'{statistics.median(ratios):.3f} ({ratios[0]:.2f}-{ratios[-1]:.2f})':>22}"
            print(f"{f'{name}, {form}':24}{plain:16.2f}{shown}", flush=True)


if __name__ == "__main__":
    main()
