"""Runs the command line in a subprocess, as a user does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

SEEDED = """
    import torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.randn(6, 4)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.6f}")
"""

NOISY = """
    import torch
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(6, 4)
    for step in range(5):
        optimizer.zero_grad()
        if step == 2:
            torch.seed()
            x = x + torch.randn(6, 4)  # the culprit
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
"""


def write(folder: Path, name: str, source: str, **values: Any) -> Path:
    """Write a script; NAME in its source is replaced by a keyword argument of that name."""
    text = textwrap.dedent(source).lstrip()
    for key, value in values.items():
        text = text.replace(key, str(value))
    path = folder / name
    path.write_text(text)
    return path


def environment(**extra: str) -> dict[str, str]:
    """The environment of the subprocess: one thread, so that tests do not fight for cores.

    It does not say that this is a CI job, where pytest prints the message of a failure twice.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")}
    return {**inherited, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", **extra}


def samebits(
    *words: object, cwd: Path, timeout: float = 180, **extra: str
) -> subprocess.CompletedProcess[str]:
    """Run `samebits WORDS`."""
    command = [sys.executable, "-m", "samebits", *map(str, words)]
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment(**extra),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def start(*words: object, cwd: Path, **extra: str) -> subprocess.Popen[str]:
    """Start `samebits WORDS` in a process group of its own."""
    command = [sys.executable, "-m", "samebits", *map(str, words)]
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=environment(**extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def complaints(stderr: str) -> list[str]:
    """The lines that samebits itself wrote to stderr."""
    return [line for line in stderr.splitlines() if line.startswith("samebits: ")]


def judged(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The one JSON object on stdout; fails if there is anything else."""
    decoded = json.loads(result.stdout)
    assert isinstance(decoded, dict)
    return decoded
