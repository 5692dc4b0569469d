"""Runs `fuzz_child.py` and looks at what it found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

MOST_KB = 1_100_000
"""Of resident memory in all: torch alone takes half of it; the child has a limit on what it may add."""


def check_cases(kind: str, first: int, count: int, folder: Path) -> None:
    """None of these cases may fail."""
    child = Path(__file__).with_name("fuzz_child.py")
    command = [sys.executable, str(child), kind, str(first), str(count), str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    *failures, last = [json.loads(line) for line in done.stdout.splitlines()]
    report = "\n".join(f"case {each['case']}: {each['wrong']}" for each in failures[:3])
    assert not failures, f"{len(failures)} of {count} {kind}:\n{report}"
    assert last["cases"] == count
    assert last["peak_kb"] < MOST_KB
