"""Runs scripts under control in fresh interpreters, children included."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from cli_support import environment

import samebits

SOURCE = Path(samebits.__file__).parents[1]


def run_script(folder: Path, source: str, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a script, with samebits on its path."""
    script = folder / "train.py"
    script.write_text(textwrap.dedent(source).lstrip())
    return subprocess.run(
        [sys.executable, str(script), *words],
        cwd=folder,
        env=environment(**{"PYTHONPATH": str(SOURCE), **extra}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def found(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON object that a script printed last."""
    assert result.returncode == 0, result.stderr
    decoded = json.loads(result.stdout.splitlines()[-1])
    assert isinstance(decoded, dict)
    return decoded
