"""A data file that changed between two runs is told, in whichever way the script reads it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import save_file

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SCRIPT = """\
import sqlite3
import torch
from safetensors.torch import load_file

class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        with open("of-worker.txt") as file:
            value = float(file.read())
        weight = load_file("of-worker.safetensors")["w"].clone()
        return torch.tensor([value, index]) * weight

def main():
    weight = load_file("weights.safetensors")["w"].clone()
    with open("both.bin", "r+b") as file:
        value = float(file.read())
    base = sqlite3.connect("numbers.db")
    value += base.execute("select x from numbers").fetchone()[0]
    base.close()
    loader = torch.utils.data.DataLoader(Numbers(), num_workers=1, multiprocessing_context="spawn")
    layer = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    for batch in loader:
        optimizer.zero_grad()
        (layer(batch * weight) * value).sum().backward()
        optimizer.step()
    load_file("weights.safetensors")

if __name__ == "__main__":
    main()
"""
NAMES = {"weights.safetensors", "both.bin", "numbers.db", "of-worker.txt", "of-worker.safetensors"}


def write_data(folder: Path, number: int) -> None:
    """Write each file that the script reads."""
    for name in ("weights", "of-worker"):
        save_file({"w": np.full(2, number, np.float32)}, folder / f"{name}.safetensors")
    (folder / "both.bin").write_text(str(number))
    (folder / "of-worker.txt").write_text(str(number))
    with closing(sqlite3.connect(folder / "numbers.db")) as base, base:
        base.execute("create table if not exists numbers (x)")
        base.execute("delete from numbers")
        base.execute("insert into numbers values (?)", (number,))


def samebits(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    return subprocess.run(
        [sys.executable, "-m", "samebits", *words], cwd=folder, capture_output=True, text=True, check=False
    )


def test_each_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMEBITS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    for number, record in enumerate("aab", start=1):
        if record == "b" or number == 1:
            write_data(folder, number)
        ended = samebits(folder, "run", "--seed", "0", "--record", f"{record}{number}.sbr", "train.py")
        assert ended.stderr.endswith(f"samebits: 2 steps recorded in {record}{number}.sbr\n")

    alike = samebits(folder, "diff", "a1.sbr", "a2.sbr")
    assert (alike.returncode, "not known" in alike.stdout) == (0, False)
    changed = samebits(folder, "diff", "--json", "a1.sbr", "b3.sbr")
    told = json.loads(changed.stdout)
    assert {each["fact"][-1] for each in told["differences"]} == NAMES
    assert {each["strength"] for each in told["differences"]} == {"input"}
    assert told["unknown"]["data_files"] == []
    assert not list(folder.glob("*data-read"))
