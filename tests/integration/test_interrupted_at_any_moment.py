"""SIGINT at moments spread over the life of a run: no traceback of samebits, and a record that is whole.

The end of a run is swept by calls, not by the clock: the script's last line has a signal sent to its process
at the n-th call of a function after it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from process_support import heed_signals

from samebits.errors import SamebitsError
from samebits.records.reader import RecordReader

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """\
import atexit, signal, sys
open("data.bin", "rb").read()
atexit.register(lambda: print("at exit", flush=True))
number, moment, handled = map(int, sys.argv[1:])
n_calls = 0

def handle(number, frame):
    print("handled", flush=True)
    sys.exit(3)

if handled:
    signal.signal(number, handle)

def send(frame, event, argument):
    global n_calls
    if event == "call":
        n_calls += 1
        if n_calls == moment:
            sys.setprofile(None)
            signal.raise_signal(number)

print("last", flush=True)
sys.setprofile(send)
"""
# From the last line to the end of the record there are some 15,000 calls; later ones never come.
MOMENTS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 100, 200, 500, 1000, 2000, 4000, 8000, 10_000, 12_000, 14_000)
COMMAND = [sys.executable, "-m", "samebits", "run", "--record", "run.sbr", "train.py"]
# Before `samebits/__main__.py` can do anything the package is imported, by Python as any other.
OWN_LINE = re.compile(r"samebits/(?!__init__\.py|__main__\.py|errors\.py|_runtime/(?:__init__|package)\.py)")
# So CPython ends, with status 1, while it starts itself: before anything of samebits runs.
OF_PYTHONS_START = ("Could not import runpy module", "Fatal Python error: init_")
OF_THREADS = "Exception ignored in: <module 'threading'"  # what CPython says while it waits for threads


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    status: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the script is; it reads a file."""
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "data.bin").write_bytes(b"1234")
    monkeypatch.setenv("SAMEBITS_CACHE", str(tmp_path / "cache"))
    return tmp_path


def run(folder: Path, number: int, *, moment: int = 0, handled: bool = False, after: float = 0) -> Ended:
    """Run the script, with a signal at a call after its last line, or so many seconds after its start."""
    (folder / "run.sbr").unlink(missing_ok=True)
    process = subprocess.Popen(
        [*COMMAND, str(number), str(moment), str(int(handled))],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_signals,  # noqa: PLW1509 - it calls the kernel and nothing else
        start_new_session=True,
    )
    if after:
        time.sleep(after)
        os.killpg(process.pid, number)  # as a terminal does
    out, err = process.communicate(timeout=120)
    return Ended(process.returncode, out, err)


def assert_clear(ended: Ended) -> None:
    """Nothing of samebits' own code is shown."""
    shown = re.sub(r"^samebits: .*$", "", ended.err, flags=re.MULTILINE)
    assert not OWN_LINE.search(shown), ended.err
    assert not [text for text in ("lost sys.stderr", "internal error") if text in shown], ended.err
    assert "Exception ignored" not in shown.replace(OF_THREADS, ""), ended.err


def status_in(record: Path) -> str:
    """What a record says of its end; empty where there is none yet."""
    try:
        with RecordReader(record) as reader:
            return reader.info.status
    except SamebitsError as error:
        return "" if error.slug in ("record-missing", "record-unreadable") else error.slug


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupt_after_the_last_line(folder: Path, moment: int) -> None:
    """The record is closed, the script's exit functions run, and the shell sees the interrupt."""
    ended = run(folder, signal.SIGINT, moment=moment)

    assert_clear(ended)
    # As in bare Python it only ends the waiting for threads, if it comes right then.
    assert ended.status == (0 if OF_THREADS in ended.err else -signal.SIGINT)
    assert ended.out == "last\nat exit\n"
    assert status_in(folder / "run.sbr") in ("finished", "failed")
    assert ended.err.splitlines()[-1].startswith("samebits: 0 steps recorded in run.sbr")


def test_an_interrupt_leaves_out_the_hashing(folder: Path) -> None:
    """What is not known then is told."""
    ended = run(folder, signal.SIGINT, moment=1000)
    assert ended.err == (
        "samebits: 0 steps recorded in run.sbr; 1 data file has no digest (skipped with Ctrl-C)\n"
    )


@pytest.mark.parametrize("moment", MOMENTS[::3])
def test_a_signal_to_end_after_the_last_line(folder: Path, moment: int) -> None:
    """It ends the process at once, as in bare Python; the record is closed, or says that it is not."""
    ended = run(folder, signal.SIGTERM, moment=moment)

    assert_clear(ended)
    assert ended.status == -signal.SIGTERM
    assert status_in(folder / "run.sbr") in ("finished", "running")


@pytest.mark.parametrize("moment", MOMENTS[5::3])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_handler_of_the_script_does_not_cut_off_the_record(folder: Path, number: int, moment: int) -> None:
    """It is called once the record is closed, or while nothing of samebits is at work."""
    ended = run(folder, number, moment=moment, handled=True)

    assert_clear(ended)
    assert sorted(ended.out.splitlines()) == ["at exit", "handled", "last"]
    assert status_in(folder / "run.sbr") == "finished"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", [0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.1, 1.4, 1.8, 2.3])
def test_a_signal_at_any_time(folder: Path, number: int, after: float) -> None:
    """Also while samebits is imported. How far the run came depends on the machine."""
    ended = run(folder, number, after=after)

    assert_clear(ended)
    if not ended.err.startswith(OF_PYTHONS_START):
        assert ended.status in (-number, 128 + number, 0)
    assert status_in(folder / "run.sbr") in ("", "finished", "failed", "running")
