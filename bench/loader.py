"""What keyed samples cost: for each sample, on items of 1 ms, and to begin a shuffle of 10**9."""

from __future__ import annotations

import argparse
import random
import resource
import time
import timeit
from typing import TYPE_CHECKING

import numpy as np
import torch

import samebits
from samebits.data.samplers import Shuffled
from samebits.determinism.context import deterministic
from samebits.rng.samples import EpochKeys, SampleRng

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_SEED = 3


class Busy(torch.utils.data.Dataset[torch.Tensor]):
    """Items that keep a core busy for a time, as decoding an image does, and then draw.

    Args:
        size: how many.
        seconds: for each.
    """

    def __init__(self, size: int, seconds: float) -> None:
        self.size, self.seconds = size, seconds

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> torch.Tensor:
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            pass
        return torch.rand(8) + random.random() + float(np.random.rand())


def seconds_of(loader: Iterable[object]) -> float:
    """Of one pass: processor time where this process loads, which others do not change; else wall time."""
    clock = time.process_time if getattr(loader, "num_workers", 0) == 0 else time.perf_counter
    begin = clock()
    for _ in loader:
        pass
    return clock() - begin


def ratio(first: Callable[[], float], second: Callable[[], float], rounds: int) -> float:
    """The least time of the first over that of the second, run in turn."""
    pairs = [(first(), second()) for _ in range(rounds)]
    return min(pair[0] for pair in pairs) / min(pair[1] for pair in pairs)


def keying() -> float:
    """Microseconds of keying one sample."""
    rng, keys = SampleRng({}), EpochKeys(_SEED, 0)
    rng.begin_batch()
    count, indices = 2000, iter(range(10**9))
    taken = timeit.repeat(
        lambda: rng.key(keys.sample(next(indices)), 0, 0), number=count, repeat=15, timer=time.process_time
    )
    return min(taken) / count * 1e6


def drawing() -> float:
    """Microseconds of the first draws after a key: a generator makes 624 numbers at a time."""
    rng, keys = SampleRng({}), EpochKeys(_SEED, 0)

    def draw() -> None:
        rng.key(keys.sample(1))
        random.random()
        np.random.rand()
        torch.rand(())

    return min(timeit.repeat(draw, number=1000, repeat=15, timer=time.process_time)) / 1000 * 1e6


def throughput(workers: int, batch_size: int, options: argparse.Namespace) -> float:
    """Of keyed samples, as a part of plain torch's."""
    dataset = Busy(options.samples, 0.001)
    more = {"num_workers": workers, "persistent_workers": workers > 0}
    plain = torch.utils.data.DataLoader(dataset, batch_size, shuffle=True, **more)
    keyed = samebits.DataLoader(dataset, batch_size, shuffle=True, seed=_SEED, **more)
    for loader in (plain, keyed):
        seconds_of(loader)
    return ratio(lambda: seconds_of(plain), lambda: seconds_of(keyed), options.rounds)


def unchanged_script(workers: int, options: argparse.Namespace) -> float:
    """Of a plain loader with `--keyed-samples`, as a part of the same with control alone."""
    dataset = Busy(options.samples, 0.001)

    def seconds(*, keyed: bool) -> float:
        with deterministic(seed=_SEED, keyed_samples=keyed):
            loader = torch.utils.data.DataLoader(dataset, 32, shuffle=True, num_workers=workers)
            return seconds_of(loader)

    return ratio(lambda: seconds(keyed=False), lambda: seconds(keyed=True), options.rounds)


def first_batch(size: int) -> float:
    """Milliseconds from a new loader to the indices of its first batch of 256, the least of several."""
    taken = []
    for seed in range(9):
        begin = time.perf_counter()
        Shuffled(size).indices(0, 0, 256, seed=seed)
        taken.append(time.perf_counter() - begin)
    return min(taken) * 1e3


def memory_of_shuffle(size: int) -> float:
    """By how many MiB the process grew while 1000 batches of a shuffle were asked for."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for batch in range(1000):
        Shuffled(size).indices(0, batch * 256, batch * 256 + 256, seed=_SEED)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=512, help="samples of a pass (default: 512)")
    parser.add_argument("--rounds", type=int, default=7, help="passes of each loader (default: 7)")
    options = parser.parse_args()
    print(f"samebits {samebits.__version__}, torch {torch.__version__}, NumPy {np.__version__}")
    print(f"keying one sample                            {keying():8.1f} us")
    print(f"keying it, and one draw from each generator  {drawing():8.1f} us")
    for workers, batch_size in ((0, 32), (0, 1), (1, 32), (2, 32)):
        found = throughput(workers, batch_size, options)
        print(
            f"throughput, items of 1 ms, {workers} workers, batch {batch_size:3} {found:9.3f} of plain torch"
        )
    for workers in (0, 1):
        found = unchanged_script(workers, options)
        print(f"--keyed-samples, items of 1 ms, {workers} workers      {found:9.3f} of the same without")
    print(f"shuffle of 10**9, first batch of 256         {first_batch(10**9):8.2f} ms")
    print(f"shuffle of 16384, first batch of 256         {first_batch(16384):8.2f} ms")
    print(f"shuffle of 10**9, growth over 1000 batches   {memory_of_shuffle(10**9):8.1f} MiB")


if __name__ == "__main__":
    main()
