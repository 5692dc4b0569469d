"""Data files whose contents are not known: told with the reason, and never taken for a difference."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from samebits.commands.lock.file import LockFile, read_lock, write_lock

if TYPE_CHECKING:
    from pathlib import Path

# It reads a file, and deletes it where it is told to.
SCRIPT = """\
import os, sys
value = float(open("number.txt").read())
if os.path.exists("delete"):
    os.unlink("number.txt")
import torch
layer = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
optimizer.zero_grad()
(layer(torch.ones(1, 2)) * value).sum().backward()
optimizer.step()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the script is, with the file that it reads."""
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "number.txt").write_text("2")
    monkeypatch.setenv("SAMEBITS_CACHE", str(tmp_path / "cache"))
    return tmp_path


def samebits(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    return subprocess.run(
        [sys.executable, "-m", "samebits", *words], cwd=folder, capture_output=True, text=True, check=False
    )


def test_a_file_that_is_gone_at_the_end_of_a_run(folder: Path) -> None:
    samebits(folder, "run", "--seed", "0", "--record", "a.sbr", "train.py")
    (folder / "delete").touch()
    ended = samebits(folder, "run", "--seed", "0", "--record", "b.sbr", "train.py")
    why = "1 data file has no digest (gone at the end of the run)"
    assert ended.stderr.splitlines()[-1] == f"samebits: 1 step recorded in b.sbr; {why}"

    told = " ".join(samebits(folder, "diff", "a.sbr", "b.sbr").stdout.split())
    assert "nothing that can change bits" in told
    assert "not known: data file number.txt has no digest in b.sbr (gone at the end of the run)" in told
    compared = " ".join(samebits(folder, "compare", "a.sbr", "b.sbr").stdout.split())
    assert "it is not known whether data file number.txt was the same" in compared
    assert "the environments differ: data file" not in compared
    assert why in " ".join(samebits(folder, "show", "b.sbr").stdout.split())
    samebits(folder, "report", "b.sbr", "--output", "b.html")
    assert why in (folder / "b.html").read_text()


def test_a_check_of_a_lock_blames_no_file_that_is_not_known(folder: Path) -> None:
    """As if the hashing of its file had been skipped when the lock was made; the file is another by now."""
    samebits(folder, "lock", "--seed", "0", "train.py")
    lock = read_lock(folder / "samebits.lock")
    entry = lock.entries["train"]
    data = {"files": {}, "unread": {"number.txt": "skipped"}, "unlisted": {"gone": 2}}
    entry = replace(entry, environment={**entry.environment, "data": data})
    write_lock(LockFile(lock.path, {"train": entry}))
    (folder / "number.txt").write_text("3")

    checked = samebits(folder, "check", "--json")
    (told,) = json.loads(checked.stdout)["entries"]
    assert (checked.returncode, told["verdict"], told["blame"]) == (1, "different", "unrecorded")
    assert told["inputs"] == []
    assert told["unknown"] == [
        "data file number.txt has no digest in the lock (skipped with Ctrl-C), so it cannot be compared",
        "2 more data files, not compared either",
    ]
    assert "not known" in samebits(folder, "check").stdout
