"""Running scripts under control, in this process and in fresh ones."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from typing import TYPE_CHECKING

from samebits.determinism.context import deterministic

if TYPE_CHECKING:
    from pathlib import Path


def quiet(*args, **kwargs):
    """`deterministic`, without the warning about what is too late in any test process."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "it is too late")
        return deterministic(*args, **kwargs)


def run(folder: Path, source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a fresh process."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(source).lstrip())
    variables = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run(
        [sys.executable, str(path)],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


def line_of(folder: Path, text: str) -> int:
    """The number of the first line of the script that contains that text."""
    lines = (folder / "script.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)
