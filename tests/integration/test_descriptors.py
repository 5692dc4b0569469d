"""Recording never writes through a descriptor that is not its own any more, and shows none to the script."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from samebits.records.reader import RecordReader

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = """
import os
def train(steps):
    import torch
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    return model
"""
NUMBERS = """
print(sorted(int(name) for name in os.listdir("/proc/self/fd")))
with open("own.txt", "w") as file:
    print(file.fileno())
"""
STEAL = """
os.closerange(3, 64)
files = [open(f"own{number}", "w+b") for number in range(12)]
for file in files:
    file.write(b"user")
    file.flush()
train(600)
for file in files:
    file.seek(0)
    assert file.read() == b"user", file
"""
THREADS = """
import os, threading
stop = threading.Event()
def steal():
    while not stop.is_set():
        os.closerange(3, 64)
        numbers = [os.open(f"own{n}", os.O_CREAT | os.O_TRUNC | os.O_RDWR) for n in range(4)]
        for number in numbers:
            os.write(number, b"user")
        for number in range(4):
            with open(f"own{number}", "rb") as file:
                assert file.read() == b"user", file.read()
train(2)  # what is imported late is there
thread = threading.Thread(target=steal)
thread.start()
train(1500)
stop.set()
thread.join()
"""
DAEMON = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.closerange(0, 64)
for name in ("in", "out", "err", "data"):
    os.open(name, os.O_CREAT | os.O_RDWR)
train(400)
os.write(3, b"done")
os.rename("data", "data.done")
"""
DOUBLE_CLOSE = """
number = os.open("a", os.O_CREAT | os.O_RDWR)
train(1)
os.close(number)
for n in range(3, 40):
    try:
        os.close(n)
    except OSError:
        pass
second = open("b", "w")
train(300)
second.write("user")
second.close()
assert open("b").read() == "user"
"""
DUP2 = """
mine = os.open("mine", os.O_CREAT | os.O_RDWR)
for number in range(3, 40):
    if number != mine:
        os.dup2(mine, number)
train(300)
assert os.fstat(mine).st_size == 0
"""
NONE_LEFT = """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 64))
import torch
train(1)
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
train(700)
print(len(held), resource.getrlimit(resource.RLIMIT_NOFILE))
"""
SMALL_FILES = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
import torch
train(1)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
train(700)
print(resource.getrlimit(resource.RLIMIT_FSIZE))
"""
MOVED = """
train(1)
os.rename("../records", "../moved")
train(600)
print("end")
"""
REPLACED = """
train(1)
for name in os.listdir("../records"):
    os.unlink(f"../records/{name}")
    with open(f"../records/{name}", "w") as file:
        file.write("user")
train(600)
print(sorted(open(f"../records/{name}").read() for name in os.listdir("../records")))
"""


def run(folder: Path, source: str, *options: str, level: str = "step") -> subprocess.CompletedProcess[str]:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    (work / "probe.py").write_text(TRAIN + source)
    record = ["--record", "../records/r.sbr", "--force", "--level", level]
    command = [sys.executable, "-m", "samebits", "run", *record, *options, "probe.py"]
    (folder / "records").mkdir(exist_ok=True)
    return subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=100, check=False)


def bare(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    work = folder / "bare"
    work.mkdir()
    (work / "probe.py").write_text(TRAIN + source)
    command = [sys.executable, "probe.py"]
    return subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=100, check=False)


def steps(folder: Path) -> int:
    with RecordReader(folder / "records/r.sbr") as reader:
        assert reader.info.status == "finished"
        return reader.info.steps


def test_the_script_sees_the_descriptors_of_bare_python(tmp_path: Path) -> None:
    """None is held, so the first file that is opened has the number that it has in bare Python."""
    expected = bare(tmp_path, NUMBERS)
    assert run(tmp_path, NUMBERS).stdout == expected.stdout
    assert run(tmp_path, NUMBERS, "--seed", "3").stdout == expected.stdout
    assert "3\n" in expected.stdout


@pytest.mark.parametrize(
    ("source", "n_steps"),
    [(STEAL, 600), (THREADS, 1502), (DOUBLE_CLOSE, 301), (DUP2, 300), (NONE_LEFT, 701), (SMALL_FILES, 701)],
    ids=["closerange", "threads", "double close", "dup2", "no descriptors left", "small files only"],
)
def test_files_of_the_script_hold_what_it_wrote(tmp_path: Path, source: str, n_steps: int) -> None:
    """Whatever it does to descriptors and limits; and the record is whole."""
    done = run(tmp_path, source)
    assert done.returncode == 0, done.stderr
    assert steps(tmp_path) == n_steps
    assert sorted(path.name for path in (tmp_path / "records").iterdir()) == ["r.sbr"]


def test_a_daemon_keeps_its_files(tmp_path: Path) -> None:
    """It closes all descriptors, and its first files get the numbers 0 to 3."""
    done = run(tmp_path, DAEMON)
    assert done.returncode == 0, done.stderr
    work = tmp_path / "work"
    for _ in range(600):
        if (work / "data.done").exists():
            break
        signal.sigtimedwait((), 0.05)
    assert (work / "data.done").read_bytes() == b"done"
    assert [(work / name).read_bytes() for name in ("in", "out", "err")] == [b"", b"", b""]


@pytest.mark.parametrize(
    ("source", "output"),
    [(MOVED, "end\n"), (REPLACED, "['user', 'user']\n")],
    ids=["folder renamed", "files replaced"],
)
def test_a_record_that_is_gone_is_told_once(tmp_path: Path, source: str, output: str) -> None:
    """The script goes on; nothing is written where another file lies."""
    done = run(tmp_path, source)
    assert (done.returncode, done.stdout) == (0, output)
    assert done.stderr.count("could not be written any further") == 1


def test_no_line_of_samebits_goes_into_a_file_of_the_script(tmp_path: Path) -> None:
    """Descriptor 2 may be a file of the script's by then."""
    source = (
        "import os\nos.close(2)\nos.open('own', os.O_CREAT | os.O_RDWR)\nimport torch\ntorch.manual_seed(1)\n"
    )
    done = run(tmp_path, source, "--seed", "5")
    assert done.returncode == 0
    assert (tmp_path / "work/own").read_bytes() == b""


def test_run_2_reads_run_1_without_a_descriptor(tmp_path: Path) -> None:
    """`verify` stops run 2 at the first difference: it reads the record of run 1 while the script runs."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "probe.py").write_text(TRAIN + NUMBERS.replace("print(", "print('numbers', ") + STEAL)
    command = [sys.executable, "-m", "samebits", "verify", "--no-interventions", "--json", "probe.py"]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=200, check=False)
    found = json.loads(done.stdout)
    lines = [line for line in done.stderr.splitlines() if line.startswith("numbers")]
    assert len(set(lines[::2])) == 1
    assert found["verdict"] == "different"  # its weights are not seeded
    assert all(path.read_bytes() == b"user" for path in work.glob("own[0-9]*"))
