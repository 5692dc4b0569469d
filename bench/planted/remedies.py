"""Does a script repeat once it has the lines that a report shows, and nothing else?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

IDENTICAL, DIFFERENT, FAILED, NONE = "identical", "different", "failed", "-"
_VERDICTS = {0: IDENTICAL, 1: DIFFERENT}


def tried_changes(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of the first remedy, if the report says that it was tried; else none.

    Args:
        found: what `samebits verify --json` printed.
    """
    remedy = found["findings"][0].get("remedy") if found.get("findings") else None
    return list(remedy["changes"]) if remedy and remedy["confirmed"] else []


def applied(text: str, changes: list[dict[str, Any]]) -> str:
    """A text with changed lines in the place of its own.

    Args:
        text: a source file.
        changes: of this file, each with `line`, `before` and `after`.

    Raises:
        ValueError: the lines of the file are not those that the report shows.
    """
    lines = text.split("\n")
    for change in sorted(changes, key=lambda change: change["line"], reverse=True):
        first = change["line"] - 1
        last = first + len(change["before"])
        if [line.rstrip("\r") for line in lines[first:last]] != change["before"]:
            raise ValueError(f"line {change['line']} is not {change['before']!r}")
        lines[first:last] = change["after"]
    return "\n".join(lines)


def outcome(script: Path, found: dict[str, Any], options: list[str], timeout: float) -> str:
    """What `verify` says of a copy of a script that has the lines of its report.

    Args:
        script: the script; what lies beside it is copied too.
        found: what `samebits verify --json` printed.
        options: of `verify`, as it was called before.
        timeout: seconds.

    Returns:
        `identical`, `different`, `failed`, or a dash where nothing was said to be tried.
    """
    changes = tried_changes(found)
    if not changes:
        return NONE
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        shutil.copytree(script.parent, copy)
        for file in dict.fromkeys(change["file"] for change in changes):
            path = copy / Path(file).resolve().relative_to(script.parent.resolve())
            own = [change for change in changes if change["file"] == file]
            path.write_text(applied(path.read_text(encoding="utf-8"), own), encoding="utf-8")
        return _verdict(copy / script.name, options, timeout)


def _verdict(script: Path, options: list[str], timeout: float) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "samebits", "verify", "--no-localise", *options]
        command += ["--keep", os.path.join(folder, "records"), str(script)]
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return FAILED
    return _VERDICTS.get(done.returncode, FAILED)
