"""What a user sees on a terminal while scripts run: whole lines of the script, and our row below them."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pyte = pytest.importorskip("pyte")

ROWS, COLUMNS = 12, 100
# Every way to write to a terminal: with and without line ends, past Python's streams, from C, from a child.
SCRIPT = """\
import ctypes, os, subprocess, sys, time
import torch
assert sys.stdout.isatty() and sys.stderr.isatty()
libc = ctypes.CDLL(None)
w = torch.ones(2, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for i in range(6):
    print("python", i)
    sys.stderr.write(f"half {i} ")
    sys.stderr.flush()
    time.sleep(0.25)
    opt.zero_grad(); (w * w).sum().backward(); opt.step()
    sys.stderr.write("and half\\n")
    libc.printf(b"from C %d\\n", i)
    libc.fflush(None)
    subprocess.run(["echo", f"child {i}"])
    os.write(1, f"descriptor {i}\\n".encode())
"""
LINES = [
    line
    for i in range(6)
    for line in (f"python {i}", f"half {i} and half", f"from C {i}", f"child {i}", f"descriptor {i}")
]


class Terminal:
    """A terminal of 12 rows, and what was in its last row at any time."""

    def __init__(self, command: list[str], folder: Path, term: str) -> None:
        self.screen = pyte.HistoryScreen(COLUMNS, ROWS, history=1000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self.last_rows: list[str] = []
        self.written = b""
        ours, theirs = pty.openpty()
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        environment = {**os.environ, "TERM": term, "PYTHONIOENCODING": "utf-8"}
        child = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        self._read(ours)
        self.status = child.wait()
        os.close(ours)

    def _read(self, descriptor: int) -> None:
        while select.select([descriptor], [], [], 60)[0]:
            try:
                data = os.read(descriptor, 4096)
            except OSError:  # the other side is closed
                return
            self.written += data
            self._stream.feed(data)
            self.last_rows.append(self.screen.display[-1].rstrip())

    def lines(self) -> list[str]:
        """All that scrolled away, and what is shown."""
        history = ["".join(row[column].data for column in range(COLUMNS)) for row in self.screen.history.top]
        return [line.rstrip() for line in [*history, *self.screen.display]]


def samebits(folder: Path, *words: str, term: str = "xterm-256color") -> Terminal:
    """Run a command of samebits on a terminal."""
    (folder / "script.py").write_text(SCRIPT)
    return Terminal([sys.executable, "-m", "samebits", *words, "script.py"], folder, term)


def in_order(wanted: list[str], lines: list[str]) -> bool:
    """Whether the wanted lines are there, whole, one behind the other."""
    rest = iter(lines)
    return all(any(line == each for line in rest) for each in wanted)


def test_the_lines_of_the_script_stay_whole_and_the_row_says_which_run_and_step(tmp_path):
    terminal = samebits(tmp_path, "verify")
    lines = terminal.lines()
    assert terminal.status == 0
    assert in_order([*LINES, *LINES], lines), "\n".join(lines)
    assert any("run 1 of 2 · step" in row for row in terminal.last_rows), terminal.last_rows
    assert any("run 2 of 2" in row and "left · step" in row for row in terminal.last_rows)
    assert not any("·" in line for line in lines), "\n".join(lines)  # the row is given back


def test_so_they_do_with_run(tmp_path):
    terminal = samebits(tmp_path, "run", "--record", "r.sbr")
    assert in_order(LINES, terminal.lines()), "\n".join(terminal.lines())
    assert any(row.startswith("samebits: step") for row in terminal.last_rows)
    assert not any("·" in line for line in terminal.lines())


def test_without_progress_nothing_of_ours_is_shown_while_it_runs(tmp_path):
    terminal = samebits(tmp_path, "run", "--no-progress", "--record", "r.sbr")
    assert in_order(LINES, terminal.lines())
    assert not any("·" in row for row in terminal.last_rows)


def test_a_terminal_that_knows_no_commands_gets_none(tmp_path):
    terminal = samebits(tmp_path, "run", "--record", "r.sbr", term="dumb")
    assert in_order(LINES, terminal.lines())
    assert b"\x1b" not in terminal.written
