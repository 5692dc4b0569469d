"""Speed of checkpoints beside torch.save of the same state to the same disk, and how long they block.

    python bench/checkpoint.py [--size MB] [--rounds N] [--folder PATH]

Machines are shared and noisy: every round measures everything once, in turn, and a ratio is one of best
times. `torch.save` does not flush to the disk; its time is shown without and with a flush.
`samebits.checkpoint.save` always flushes, and digests what it writes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from samebits.checkpoint import CheckpointFolder, load, save
from samebits.checkpoint._container import collect, write_container

if TYPE_CHECKING:
    from collections.abc import Callable

MEGABYTE = 1 << 20


def make_state(megabytes: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A transformer's parameters with Adam's state, about that large together."""
    width = 512
    per_layer = 3 * 4 * 12 * width * width
    layers = max(1, round(megabytes * MEGABYTE / per_layer))
    blocks = [nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True) for _ in range(layers)]
    model = nn.Sequential(*blocks)
    optimizer = torch.optim.AdamW(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
    return model, optimizer


def tensors_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Every tensor of the state."""
    states = [value for state in optimizer.state.values() for value in state.values()]
    return [*model.state_dict().values(), *states]


def timed(job: Callable[[], object]) -> float:
    """Seconds that a job takes."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def flushed_torch_save(state: Any, path: str) -> None:
    """`torch.save`, then a flush to the disk."""
    with open(path, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())


def unflushed_save(path: str, **parts: Any) -> None:
    """`samebits.checkpoint.save` without the flush and the renaming."""
    collection = collect(None, None, parts)
    with open(path, "wb", buffering=MEGABYTE) as file:
        write_container(file, collection.tree, collection.entries)


def measure_saving(folder: str, parts: dict[str, Any], rounds: int) -> dict[str, list[float]]:
    """Times of each way to save and load, the ways taking turns."""
    ours, theirs = os.path.join(folder, "ours"), os.path.join(folder, "theirs")

    def states() -> dict[str, Any]:
        return {name: part.state_dict() for name, part in parts.items()} | {"rng": torch.get_rng_state()}

    jobs: dict[str, Callable[[], object]] = {
        "torch.save": lambda: torch.save(states(), theirs),
        "ours, not flushed": lambda: unflushed_save(ours, **parts),
        "torch.save and flush": lambda: flushed_torch_save(states(), theirs),
        "samebits.checkpoint.save": lambda: save(ours, **parts),
        "torch.load, load_state_dict": lambda: load_theirs(theirs, parts),
        "samebits.checkpoint.load": lambda: load(ours, **parts),
    }
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            os.sync()
            times[name].append(timed(job))
    return times


def load_theirs(path: str, parts: dict[str, Any]) -> None:
    """What `samebits.checkpoint.load` does, without a check."""
    states = torch.load(path, weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(states[name])


def measure_blocking(folder: str, parts: dict[str, Any], rounds: int) -> dict[str, list[float]]:
    """How long an asynchronous save holds up training, beside copies of the same tensors."""
    tensors = tensors_of(parts["model"], parts["optimizer"])
    copies = [torch.empty_like(tensor) for tensor in tensors]
    times: dict[str, list[float]] = {
        "clone of each tensor": [],
        "copy to kept memory": [],
        "asynchronous": [],
    }

    def copy() -> None:
        for target, source in zip(copies, tensors, strict=True):
            target.copy_(source)

    with torch.no_grad(), CheckpointFolder(folder, asynchronous=True, keep_last=1) as checkpoints:
        for step in range(rounds + 1):
            first = step == 0
            clone = timed(lambda: [tensor.clone() for tensor in tensors])
            copied = timed(copy)
            blocked = timed(lambda step=step: checkpoints.save(step=step, **parts))
            checkpoints.wait()
            os.sync()
            if first:
                times["asynchronous, first time"] = [blocked]
                continue
            for name, value in zip(times, (clone, copied, blocked), strict=False):
                times[name].append(value)
    return times


def show(times: dict[str, list[float]], megabytes: float) -> None:
    """A table."""
    for name, values in times.items():
        best, middle = min(values), sorted(values)[len(values) // 2]
        speed = megabytes / 1e3 / best
        print(f"{name:30} best {1e3 * best:8.1f} ms  median {1e3 * middle:8.1f} ms  {speed:6.2f} GB/s")


def ratio(times: dict[str, list[float]], first: str, second: str) -> str:
    """Best and median of the rounds' ratios of two times."""
    each = sorted(a / b for a, b in zip(times[first], times[second], strict=True))
    return f"{min(times[first]) / min(times[second]):.2f} (median of rounds {each[len(each) // 2]:.2f})"


def main() -> None:
    """Measure, and print tables and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=400, help="of the state, in MB")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", help="on the disk to write to")
    arguments = parser.parse_args()
    model, optimizer = make_state(arguments.size)
    parts = {"model": model, "optimizer": optimizer}
    tensors = tensors_of(model, optimizer)
    megabytes = sum(tensor.nbytes for tensor in tensors) / 1e6
    print(f"state of {len(tensors)} tensors, {megabytes:.0f} MB; {torch.get_num_threads()} threads")
    folder = tempfile.mkdtemp(dir=arguments.folder)
    try:
        saving = measure_saving(folder, parts, arguments.rounds)
        show(saving, megabytes)
        blocking = measure_blocking(folder, parts, arguments.rounds)
        show(blocking, megabytes)
    finally:
        shutil.rmtree(folder)
    pairs = {
        "speed of save, both flushed": (saving, "torch.save and flush", "samebits.checkpoint.save"),
        "speed of save, neither flushed": (saving, "torch.save", "ours, not flushed"),
        "speed of load": (saving, "torch.load, load_state_dict", "samebits.checkpoint.load"),
        "blocking time, of clones": (blocking, "asynchronous", "clone of each tensor"),
        "blocking time, of a copy": (blocking, "asynchronous", "copy to kept memory"),
    }
    for name, (times, first, second) in pairs.items():
        print(f"{name:32} {ratio(times, first, second)}")


if __name__ == "__main__":
    main()
