"""Speed of the digest beside the read limit and other hashes: one thread, all in one run, best of several.

    python bench/digest.py [--size MB] [--rounds N]

Machines are shared and noisy: every round measures everything once, and a ratio is one of best times.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from typing import TYPE_CHECKING

import torch

from samebits.digest import DigestPlan, backend_name, digest_many, native
from samebits.digest._torch_backend import TorchBackend

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL_COUNT = 4096
SMALL_BYTES = 4096


def best_times(jobs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The shortest time of each job, the jobs taking turns."""
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(rounds):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def repeated(job: Callable[[], object], count: int) -> Callable[[], object]:
    """The job, `count` times in a row."""

    def run() -> None:
        for _ in range(count):
            job()

    return run


def with_isa(isa: str, tensors: list[torch.Tensor]) -> Callable[[], object]:
    """`digest_many` with one instruction set."""
    library = native.load()

    def run() -> None:
        assert library is not None
        library.select(isa.encode())
        digest_many(tensors)
        library.select(b"")

    return run


def instruction_sets() -> list[str]:
    """Those of this machine, best first."""
    library = native.load()
    if library is None:
        return []
    found = [name for name in ("avx512", "avx2", "neon", "scalar") if library.select(name.encode())]
    library.select(b"")
    return found


def other_hashes(tensor: torch.Tensor) -> dict[str, Callable[[], object]]:
    """Hashes of the same bytes by other libraries, those that are installed."""
    data = tensor.view(torch.uint8).numpy()
    jobs: dict[str, Callable[[], object]] = {"sha256": lambda: hashlib.sha256(data).digest()}
    try:
        import xxhash

        jobs["xxh3-128"] = lambda: xxhash.xxh3_128_digest(data)
    except ImportError:
        print("xxhash is not installed: pip install xxhash")
    if hasattr(torch, "hash_tensor"):
        jobs["torch.hash_tensor"] = lambda: torch.hash_tensor(tensor)
    return jobs


def bench_large(megabytes: int, rounds: int) -> None:
    """GB/s on one large tensor."""
    tensor = torch.randn(megabytes << 18)
    jobs: dict[str, Callable[[], object]] = {"torch.sum": tensor.sum}
    jobs |= {f"digest {isa}": with_isa(isa, [tensor]) for isa in instruction_sets()}
    jobs |= {"digest torch": lambda: TorchBackend().digest_tensors([tensor])} | other_hashes(tensor)
    times = best_times(jobs, rounds)
    print(f"\none tensor of {megabytes} MB, float32\n{'':20}{'GB/s':>10}{'of torch.sum':>14}")
    for name, seconds in times.items():
        print(f"{name:20}{tensor.nbytes / seconds / 1e9:10.2f}{times['torch.sum'] / seconds:14.2f}")


def bench_small(rounds: int) -> None:
    """Microseconds a tensor on thousands of small tensors, as such and beyond the read."""
    memory = torch.randn(SMALL_COUNT * SMALL_BYTES // 4)
    tensors = list(memory.view(SMALL_COUNT, -1).unbind())
    plan = DigestPlan(tensors)
    other = [other_hashes(t) for t in tensors]
    jobs: dict[str, Callable[[], object]] = {
        "read (one sum)": memory.sum,
        "torch.sum": lambda: [t.sum() for t in tensors],
        "digest_many": lambda: digest_many(tensors),
        "DigestPlan": plan.digest,
    }
    for name in other[0]:
        jobs[name] = lambda name=name: [hashes[name]() for hashes in other]  # type: ignore[misc]
    times = best_times(jobs, rounds)
    read = times["read (one sum)"]
    print(f"\n{SMALL_COUNT} tensors of {SMALL_BYTES} bytes\n{'':20}{'us each':>10}{'beyond the read':>17}")
    for name, seconds in times.items():
        print(f"{name:20}{seconds / SMALL_COUNT * 1e6:10.2f}{(seconds - read) / SMALL_COUNT * 1e6:17.2f}")


def gpt_state() -> list[torch.Tensor]:
    """Tensors of a GPT of 3.7 million parameters with Adam: parameters, gradients, two moments, steps."""
    width, layers = 256, 4
    shapes = [(256, width), (128, width), (width,), (width,), (256, width)]
    for _ in range(layers):
        shapes += [(width,), (width,), (3 * width, width), (3 * width,), (width, width), (width,)]
        shapes += [(width,), (width,), (4 * width, width), (4 * width,), (width, 4 * width), (width,)]
    return [torch.randn(shape) for shape in shapes for _ in range(4)] + [torch.tensor(1.0) for _ in shapes]


def bench_training(rounds: int) -> None:
    """What recording asks for: a few small tensors at each op, the whole state at each step."""
    few = [torch.randn(4, 16) for _ in range(3)]
    state = gpt_state()
    matrix = torch.randn(400, 120)
    images = torch.randn(4, 6, 28, 28)
    plan, small_plan = DigestPlan(state), DigestPlan(few * 10)
    jobs: dict[str, tuple[Callable[[], object], int]] = {
        "3 tensors of 256 bytes": (lambda: digest_many(few), 1000),
        "30 of them, DigestPlan": (small_plan.digest, 200),
        "120x400 float32": (lambda: digest_many([matrix.view(120, 400)]), 200),
        "120x400 float32, transposed": (lambda: digest_many([matrix.t()]), 200),
        "4x6x28x28": (lambda: digest_many([images]), 200),
        "4x6x28x28, channels_last": (lambda: digest_many([images_last]), 200),
        f"GPT state, {len(state)} tensors, {sum(t.nbytes for t in state) / 1e6:.0f} MB, plan": (
            plan.digest,
            1,
        ),
        "GPT state, torch.sum of each": (lambda: [t.sum() for t in state], 1),
    }
    images_last = images.to(memory_format=torch.channels_last)
    times = best_times({name: repeated(job, count) for name, (job, count) in jobs.items()}, rounds)
    print(f"\n{'':46}{'us a call':>12}")
    for name, (_, count) in jobs.items():
        print(f"{name:46}{times[name] / count * 1e6:12.1f}")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=256, metavar="MB")
    parser.add_argument("--rounds", type=int, default=15, metavar="N")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, back end {backend_name()}, one thread, best of {options.rounds}")
    bench_large(options.size, options.rounds)
    bench_small(options.rounds)
    bench_training(options.rounds)


if __name__ == "__main__":
    main()
