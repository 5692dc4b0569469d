"""How a run is ended at its limit: where it is, without going back to the script."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from process_support import is_gone

from samebits.records.reader import RecordReader

if TYPE_CHECKING:
    from pathlib import Path

TRAINING = """
import atexit, contextlib, os, subprocess, sys, tempfile, threading, torch
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)

def train(steps):
    for step in range(steps):
        optimizer.zero_grad()
        model(torch.ones(4, 2)).sum().backward()
        optimizer.step()
        print("step", step)
"""
UNWINDING = """
@contextlib.contextmanager
def saving():
    try:
        yield
    finally:
        print("saved by a context")

try:
    with saving():
        train(5)
except BaseException as error:
    print("caught", type(error))
finally:
    print("finally")
print("went on")
"""
THREAD = """
thread = threading.Thread(target=train, args=(5,))
thread.start()
thread.join()
print("joined")
"""
LEFT_BEHIND = """
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, index):
        with open("workers", "a") as file:
            file.write(f"{os.getpid()}\\n")
        return torch.ones(2)

def sleeper(_=None):
    with open("workers", "a") as file:
        file.write(f"{os.getpid()}\\n")
    import time
    time.sleep(100)

if __name__ == "__main__":
    import multiprocessing
    held = tempfile.TemporaryDirectory(dir=".", prefix="scratch-")
    log = open("log.txt", "w")
    atexit.register(lambda: open("atexit.txt", "w").close())
    multiprocessing.get_context("fork").Process(target=sleeper).start()
    code = "import os, time; print(os.getpid(), file=open('workers', 'a')); time.sleep(100)"
    other = subprocess.Popen([sys.executable, "-c", code])
    with contextlib.suppress(BaseException):
        for batch in torch.utils.data.DataLoader(Data(), num_workers=2):
            log.write("a line\\n")
            train(1)
"""


def run(folder: Path, source: str, steps: int) -> subprocess.CompletedProcess[str]:
    """Run a training, stopped after some steps."""
    (folder / "train.py").write_text(TRAINING + dedent(source))
    command = [
        sys.executable,
        "-m",
        "samebits",
        "run",
        "--record",
        "a.sbr",
        "--steps",
        str(steps),
        "train.py",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("source", [UNWINDING, THREAD, "torch.autograd.set_detect_anomaly(True)\ntrain(5)\n"])
def test_the_script_is_not_unwound(tmp_path: Path, source: str) -> None:
    """Nothing of it runs after the step, in whichever thread that is; what it printed before is there."""
    done = run(tmp_path, source, 2)
    assert (done.stdout, done.returncode) == ("step 0\n", 0)
    assert done.stderr == "samebits: 2 steps recorded in a.sbr\n"
    with RecordReader(tmp_path / "a.sbr") as reader:
        assert (reader.info.status, reader.info.exit_status, reader.info.steps) == ("stopped", 0, 2)


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """Workers and other processes have ended, files are written, temporary folders gone, `atexit` has run."""
    done = run(tmp_path, LEFT_BEHIND, 3)
    assert (done.returncode, done.stderr) == (0, "samebits: 3 steps recorded in a.sbr\n")
    assert (tmp_path / "log.txt").read_text() == 3 * "a line\n"
    assert (tmp_path / "atexit.txt").exists()
    assert not list(tmp_path.glob("scratch-*"))
    workers = {int(line) for line in (tmp_path / "workers").read_text().split()}
    assert len(workers) >= 3
    assert all(map(is_gone, workers))


def test_a_loader_that_would_complain_does_not(tmp_path: Path) -> None:
    """The first difference ends run 2 of `verify` without a word of the libraries' handlers."""
    source = UNWINDING.replace("train(5)", "torch.seed(); model.weight.data.normal_(); train(5)")
    (tmp_path / "train.py").write_text(TRAINING + source)
    command = [sys.executable, "-m", "samebits", "verify", "--no-localise", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    for words in ("caught", "saved by a context", "finally", "went on"):
        assert done.stdout.count(words) == (0 if words == "caught" else 1)
