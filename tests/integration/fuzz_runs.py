"""Runs `fuzz_child.py` and gives what it found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

KINDS = ("records", "logs", "checkpoints")
MOST_SECONDS = 2.0  # of processor time, for one file
MOST_MB = 500  # of the whole process; the imports take about 390 of it
ROOM_MB = 110  # for what is read, where torch alone takes more, as a build for CUDA may


@dataclass(frozen=True)
class Figures:
    """What became of some cases.

    Args:
        cases: how many were read.
        slowest_s: the most processor time that one took.
        imports_mb: memory of the process before the first.
        peak_mb: the most memory that the process held.
        broken: name of a limit to the cases that broke it, with what was found.
    """

    cases: int
    slowest_s: float
    imports_mb: float
    peak_mb: float
    broken: dict[str, list[str]]


def figures_of(kind: str, first: int, count: int, folder: Path) -> Figures:
    """Read these cases in a process of their own."""
    child = Path(__file__).with_name("fuzz_child.py")
    command = [sys.executable, str(child), kind, str(first), str(count), str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"a case hung or crashed:\n{done.stderr[-3000:]}"
    *failures, last = [json.loads(line) for line in done.stdout.splitlines()]
    broken: dict[str, list[str]] = {}
    for each in failures:
        broken.setdefault(each["limit"], []).append(f"case {each['case']}: {each['found']}")
    return Figures(**last, broken=broken)


def check_limits(figures: Figures, count: int) -> None:
    """What any file of a stranger may cost and do."""
    shown = "\n\n".join(f"{limit}: {text}" for limit, texts in figures.broken.items() for text in texts)
    assert not shown, f"a limit was broken\n{shown}"
    assert figures.cases == count
    assert figures.slowest_s <= MOST_SECONDS
    assert figures.peak_mb < max(MOST_MB, figures.imports_mb + ROOM_MB)
