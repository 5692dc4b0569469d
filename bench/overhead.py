"""What recording costs per training step, beside torch's DebugMode with tensor hashes.

    python bench/overhead.py                  the three workloads, about five minutes
    python bench/overhead.py --rounds 3       quicker, rougher
    python bench/overhead.py --workload gpt --modes plain,step
    python bench/overhead.py --device cuda --workload gpt124m --modes plain,step     on a GPU only
    python bench/overhead.py --cpu-time --threads 1    on a machine that is busy with other things

One process runs blocks of steps of the same training in turn: plain, step level, op level, step level with
each op executed again (`verify --replay`), DebugMode, then again. A block's figure is its mean time per
step, with everything that happens inside it (buffered rows are written too; opening and closing the record is
outside). The ratios are those of the fastest blocks (`min`), which other load on the machine disturbs least,
and of the medians; a target is met when the former is.

`debugmode` logs each op's outputs with its default hash (an L1 norm); `debugmode+in` hashes inputs and
outputs with torch.hash_tensor, which is nearer to what the op level does. Neither is an exact digest.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import platform
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional
from torch.utils.data import DataLoader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

EXAMPLES = Path(__file__).parents[1] / "examples"
MODES = ("plain", "step", "op", "replay", "debugmode", "debugmode+in")


@dataclass(frozen=True)
class Workload:
    """A training to measure.

    Args:
        title: what it is.
        make: makes a function that trains one step on a device.
        steps: number of steps per block.
        targets: highest ratio to plain that is aimed at, by mode.
    """

    title: str
    make: Callable[[str], Callable[[], None]]
    steps: int
    targets: dict[str, float]


def load_example(name: str) -> ModuleType:
    """Import an example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def batches(make_batch: Callable[[], list[torch.Tensor]], device: str) -> Iterator[list[torch.Tensor]]:
    """Ready-made batches through a real DataLoader, again and again: the loader adds next to nothing."""
    ready = [[part.to(device) for part in make_batch()] for _ in range(8)]
    return itertools.chain.from_iterable(DataLoader(ready, batch_size=None) for _ in itertools.count())


def make_cifar(device: str, batch_size: int) -> Callable[[], None]:
    """The network, loss, optimizer and loop of examples/cifar10.py."""
    torch.manual_seed(0)
    model = load_example("cifar10").LeNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    loader = batches(lambda: [torch.randn(batch_size, 3, 32, 32), torch.randint(10, (batch_size,))], device)

    def step() -> None:
        images, labels = next(loader)
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def make_gpt(device: str, batch_size: int, context: int, *, large: bool = False) -> Callable[[], None]:
    """The network, optimizer and loop of examples/char_gpt.py; it has 3.7 or 124 million parameters."""
    torch.manual_seed(0)
    module = load_example("char_gpt")
    sizes = {"layers": 12, "heads": 12, "width": 768} if large else {"layers": 6, "heads": 7, "width": 224}
    words = 50304 if large else 96
    model = module.GPT(module.GPTConfig(vocabulary=words, context=context, **sizes)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    loader = batches(lambda: list(torch.randint(words, (2, batch_size, context))), device)

    def step() -> None:
        tokens, following = next(loader)
        with torch.autocast(device, torch.bfloat16, enabled=large):
            loss = functional.cross_entropy(model(tokens).flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()

    return step


WORKLOADS = {
    "cifar4": Workload(
        "CIFAR net, batch 4", lambda device: make_cifar(device, 4), 150, {"step": 1.05, "op": 2.6}
    ),
    "cifar128": Workload(
        "CIFAR net, batch 128", lambda device: make_cifar(device, 128), 20, {"step": 1.01, "op": 1.2}
    ),
    "gpt": Workload(
        "GPT, 3.7 M parameters, batch 8 x 128",
        lambda device: make_gpt(device, 8, 128),
        5,
        {"step": 1.01, "op": 1.5, "replay": 3.0},
    ),
    "gpt124m": Workload(
        "GPT, 124 M parameters, bfloat16, batch 8 x 1024",
        lambda device: make_gpt(device, 8, 1024, large=True),
        5,
        {"step": 1.005},
    ),
}


def recorder(mode: str, folder: Path) -> Any:
    """Context manager that puts one block under that mode."""
    if mode == "plain":
        return contextlib.nullcontext()
    if mode == "debugmode":
        return debug_mode(hash_fn="norm", hash_inputs=False)
    if mode == "debugmode+in":
        return debug_mode(hash_fn="hash_tensor", hash_inputs=True)
    if mode == "replay":
        return replaying(folder / "block.sbr")
    import samebits

    return samebits.record(folder / "block.sbr", level=mode)


@contextlib.contextmanager
def replaying(record: Path) -> Iterator[None]:
    """Execute each op of a block once more, as `verify --replay` does."""
    from samebits.recording.session import RecordingSession
    from samebits.recording.settings import RecordingSettings

    session = RecordingSession(RecordingSettings(str(record), replay=1), ("bench",))
    session.start()
    try:
        yield
    finally:
        session.finish()


@contextlib.contextmanager
def debug_mode(**options: Any) -> Iterator[None]:
    """Put a block under DebugMode with hashes of tensors."""
    from torch.utils._debug_mode import DebugMode

    with DebugMode(), DebugMode.log_tensor_hashes(**options):
        yield


def time_block(mode: str, step: Callable[[], None], n_steps: int, clock: Callable[[], float]) -> float:
    """Milliseconds per step of one block, after two steps that are not counted."""
    with tempfile.TemporaryDirectory() as folder, recorder(mode, Path(folder)):
        step()
        step()
        start = clock()
        for _ in range(n_steps):
            step()
        return (clock() - start) / n_steps * 1000


def measure(
    workload: Workload, device: str, modes: list[str], rounds: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Times of all blocks by mode; the order of the modes turns from round to round."""
    step = workload.make(device)
    for _ in range(10):
        step()
    times: dict[str, list[float]] = {mode: [] for mode in modes}
    for number in range(rounds):
        turn = number % len(modes)
        for mode in modes[turn:] + modes[:turn]:
            times[mode].append(time_block(mode, step, workload.steps, clock))
    return times


def row(mode: str, times: dict[str, list[float]], target: float | None) -> str:
    """One line of the table."""
    fastest, median = min(times[mode]), statistics.median(times[mode])
    ratio, median_ratio = fastest / min(times["plain"]), median / statistics.median(times["plain"])
    aim = "" if target is None else f"{target:6.3f}  {'met' if ratio <= target else 'MISSED'}"
    return f"  {mode:12} {fastest:9.3f} {median:9.3f}   {ratio:7.3f} {median_ratio:7.3f}   {aim}"


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=12, help="blocks per mode and workload")
    parser.add_argument("--workload", choices=[*WORKLOADS, "all"], default="all")
    parser.add_argument("--modes", default=",".join(MODES), help="comma-separated, `plain` among them")
    parser.add_argument("--device", default="cpu", help="where it trains (default: cpu)")
    parser.add_argument("--threads", type=int, help="torch's threads (default: torch's choice)")
    parser.add_argument(
        "--cpu-time", action="store_true", help="processor time of all threads, not wall-clock"
    )
    return parser.parse_args()


def main() -> None:
    """Measure, and print target and figure side by side."""
    args = parse_arguments()
    if args.threads:
        torch.set_num_threads(args.threads)
    clock, unit = (time.process_time, "CPU ms") if args.cpu_time else (time.perf_counter, "ms")
    python, threads = platform.python_version(), torch.get_num_threads()
    print(f"torch {torch.__version__}, Python {python}, {threads} threads, {args.rounds} rounds")
    names = [name for name in WORKLOADS if name != "gpt124m"] if args.workload == "all" else [args.workload]
    for name in names:
        workload = WORKLOADS[name]
        times = measure(workload, args.device, args.modes.split(","), args.rounds, clock)
        print(f"\n{workload.title} ({unit} per step; ratios to plain)")
        print(f"  {'':12} {'min':>9} {'median':>9}   {'ratio':>7} {'median':>7}   target")
        for mode in times:
            print(row(mode, times, workload.targets.get(mode)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
