"""What the draw log costs for each call: bare, recorded, and where nothing is recorded any more."""

from __future__ import annotations

import os
import random
import tempfile
import time
import timeit
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import samebits
from samebits.recording.session import record

if TYPE_CHECKING:
    from collections.abc import Callable

_CALLS = 20_000
_REPEATS = 9


def calls() -> dict[str, Callable[[], object]]:
    """What is measured; attributes are looked up when called, as scripts do."""
    generator = np.random.default_rng(0)
    return {
        "random.random": lambda: random.random(),  # noqa: PLW0108
        "random.randint": lambda: random.randint(0, 9),
        "numpy.random.rand": lambda: np.random.rand(),  # noqa: PLW0108
        "Generator.random": lambda: generator.random(),  # noqa: PLW0108
        "time.time": lambda: time.time(),  # noqa: PLW0108
        "os.getpid": lambda: os.getpid(),  # noqa: PLW0108
        "os.urandom": lambda: os.urandom(8),
        "os.listdir": lambda: os.listdir("."),
    }


def measure(function: Callable[[], object]) -> float:
    """Nanoseconds of one call: the least of several repeats."""
    return min(timeit.repeat(function, number=_CALLS, repeat=_REPEATS)) / _CALLS * 1e9


def main() -> None:
    """Print a table."""
    bare = {name: measure(function) for name, function in calls().items()}
    with tempfile.TemporaryDirectory() as folder, record(Path(folder) / "a.sbr"):
        recorded = {name: measure(function) for name, function in calls().items()}
    print(f"samebits {samebits.__version__}: nanoseconds per call, without a step boundary")
    print(f"{'':20}{'bare':>10}{'recorded':>10}{'more':>10}")
    for name, before in bare.items():
        print(f"{name:20}{before:10.0f}{recorded[name]:10.0f}{recorded[name] - before:10.0f}")


if __name__ == "__main__":
    main()
