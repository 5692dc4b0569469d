"""How long the inventory takes: the facts of the machine and the packages that a record holds at its end.

    python bench/inventory.py

Fresh processes, after `import torch`: with an empty cache, and with what the process before left there. The
files are in the page cache of the system both times.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

from samebits._text.variable_names import CACHE

TARGETS = {"cold": 1.0, "cached": 0.1}
"""Seconds."""
TIMED = """\
import sys, time
import torch
from samebits.environment import snapshot as environment

start = time.perf_counter()
facts = environment.with_inventory(environment.collect(), sys.argv[1], "")
print(time.perf_counter() - start, len(facts.distributions))
"""


def inventory(cache: str) -> tuple[float, int]:
    """Seconds in a fresh process, and how many packages were found."""
    command = [sys.executable, "-c", TIMED, os.getcwd()]
    done = subprocess.run(
        command, env={**os.environ, CACHE: cache}, capture_output=True, text=True, check=True
    )
    seconds, packages = done.stdout.split()
    return float(seconds), int(packages)


def main() -> None:
    """Measure, and print target and figure side by side."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {"cold": [], "cached": []}
    packages = 0
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            for taken in times.values():
                seconds, packages = inventory(cache)
                taken.append(seconds)
    print(f"{packages} packages, {rounds} rounds")
    for name, taken in times.items():
        least, middle = min(taken), statistics.median(taken)
        met = "met" if middle <= TARGETS[name] else "MISSED"
        print(f"{name:8} least {least:.3f} s, median {middle:.3f} s   target {TARGETS[name]} s, {met}")


if __name__ == "__main__":
    main()
