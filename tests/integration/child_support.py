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

PACKAGE = Path(samebits.__file__).parent
STAND_INS = Path(__file__).parents[1] / "unit" / "determinism"


def overlay(folder: Path) -> Path:
    """A folder with this package in it, and stand-ins for modules of `determinism` that are not there."""
    package = folder / "overlay" / "samebits"
    package.mkdir(parents=True, exist_ok=True)
    for path in PACKAGE.iterdir():
        if path.name not in ("__pycache__", "determinism"):
            (package / path.name).symlink_to(path)
    (package / "determinism").mkdir()
    for path in (PACKAGE / "determinism").iterdir():
        if path.name != "__pycache__":
            (package / "determinism" / path.name).symlink_to(path)
    for name in ("rng", "activation"):
        target = package / "determinism" / f"{name}.py"
        if not target.exists():
            target.symlink_to(STAND_INS / f"stand_in_{name}.py")
    return package.parent


def run_script(folder: Path, source: str, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a script, with samebits on its path."""
    script = folder / "train.py"
    script.write_text(textwrap.dedent(source).lstrip())
    if not (folder / "overlay").exists():
        overlay(folder)
    return subprocess.run(
        [sys.executable, str(script), *words],
        cwd=folder,
        env=environment(**{"PYTHONPATH": str(folder / "overlay"), **extra}),
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
