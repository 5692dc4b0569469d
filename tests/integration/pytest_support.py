"""Runs pytest with the plugin in a subprocess, in a folder of its own, as a user does."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

from cli_support import environment

if TYPE_CHECKING:
    from pathlib import Path

TRAINING = """
    import random, threading, time
    import numpy as np
    import pytest
    import torch

    def fit(inputs):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for x in inputs:
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return model

    def clean():
        return fit(torch.linspace(0, 1, 32).reshape(8, 4) for _ in range(3))
"""


def run_pytest(
    folder: Path, source: str, *options: str, name: str = "test_it.py", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Write a file of tests, run pytest on it, and return what it printed (both streams in `stdout`)."""
    (folder / name).write_text(textwrap.dedent(TRAINING) + textwrap.dedent(source))
    return again(folder, *options, name, **variables)


def again(folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder whose files are there already."""
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", *options]
    return subprocess.run(
        command, cwd=folder, env=environment(**variables), text=True, check=False, timeout=580,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def line_of(folder: Path, text: str, name: str = "test_it.py") -> int:
    """Return the number of the only line that has this text."""
    lines = (folder / name).read_text().splitlines()
    (number,) = [at for at, line in enumerate(lines, 1) if text in line]
    return number
