"""What control costs: to begin, to end, and at each step.

    python bench/control.py

Prints a table. Times are the least of many, because other programs only ever add to them. Activation is
measured in fresh processes, right after `import torch`, with the garbage collector frozen: a pass over
torch's objects takes a tenth of a second, and may be due at any time.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

from fresh import compile_package, output_of

if TYPE_CHECKING:
    from collections.abc import Callable

PROCESSES = 10
ONCE = """
import warnings
warnings.simplefilter("ignore")
import gc, time, torch, numpy.random
gc.freeze()
a = time.perf_counter()
from samebits.determinism.context import deterministic
b = time.perf_counter()
control = deterministic(SEED)
c = time.perf_counter()
control.restore()
d = time.perf_counter()
control = deterministic(SEED)
e = time.perf_counter()
print(b - a, c - b, d - c, e - d)
"""


def in_processes(seed: str) -> list[tuple[float, ...]]:
    """Import, begin, end and begin again, in seconds, in processes of their own."""
    rows = []
    for _ in range(PROCESSES):
        printed = output_of([sys.executable, "-c", ONCE.replace("SEED", seed)])
        rows.append(tuple(float(word) for word in printed.split()))
    return rows


def least(call: Callable[[], Any], calls: int = 50, rounds: int = 500) -> float:
    """Seconds of one call, the least of the rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def per_step() -> list[tuple[str, float]]:
    """What a boundary costs while nothing drifts."""
    import numpy as np  # noqa: F401 - its generator is watched too
    import torch

    from samebits.determinism.context import deterministic

    warnings.simplefilter("ignore")
    rows = []
    for name, seed in (("check, switches only", None), ("check, switches and generators", 0)):
        control = deterministic(seed)
        rows.append((name, least(control.check)))
        control.restore()
    control = deterministic(0)

    def moving() -> None:
        torch.rand(1)
        control.check()

    rows.append(("the same, generators moving", least(moving) - least(lambda: torch.rand(1))))
    control.restore()
    return rows


def main() -> None:
    """Print the table."""
    compile_package()
    print(f"{'':34}{'least':>10}{'median':>10}")
    for seed in ("None", "0"):
        columns = zip(*in_processes(seed), strict=True)
        for name, column in zip(("import", "begin", "end", "begin again"), columns, strict=True):
            values = [value * 1e3 for value in column]
            label = f"{name}, seed {seed}"
            print(f"{label:34}{min(values):>7.2f} ms{statistics.median(values):>7.2f} ms")
    for name, seconds in per_step():
        print(f"{name:34}{seconds * 1e6:>7.2f} us")


if __name__ == "__main__":
    main()
