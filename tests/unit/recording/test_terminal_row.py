"""The last row of a terminal: what is written, and where nothing is."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios

import pytest

from samebits.recording.terminal_row import StatusRow, can_show, show_digesting


@pytest.fixture
def terminal():
    """A terminal of 10 rows and 20 columns: the side that reads, and the side that is written to."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 20, 0, 0))
    os.set_blocking(ours, False)
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def written(descriptor: int) -> bytes:
    """What came out, nothing if nothing did."""
    try:
        return os.read(descriptor, 4096)
    except BlockingIOError:
        return b""


def test_a_long_text_is_cut_to_the_width(terminal):
    ours, theirs = terminal
    StatusRow(theirs).show("x" * 50)
    text = written(ours)
    assert text.count(b"x") == 19
    assert b"\x1b[1;9r" in text
    assert b"\x1b[10;1H" in text


def test_room_is_made_once_and_again_when_the_terminal_has_another_size(terminal):
    ours, theirs = terminal
    row = StatusRow(theirs)
    row.show("a")
    assert written(ours).startswith(b"\x1bD\x1b[A")
    row.show("b")
    assert not written(ours).startswith(b"\x1bD")
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 8, 20, 0, 0))
    row.show("c")
    text = written(ours)
    assert text.startswith(b"\x1bD\x1b[A")
    assert b"\x1b[8;1H" in text


def test_a_row_that_was_never_shown_is_not_cleared(terminal):
    ours, theirs = terminal
    row = StatusRow(theirs)
    row.clear()
    assert written(ours) == b""
    row.show("a")
    written(ours)
    row.clear()
    assert b"\x1b[r" in written(ours)
    row.clear()
    assert written(ours) == b""


def test_nothing_is_written_into_a_file_that_took_the_descriptor_over(terminal, tmp_path):
    ours, theirs = terminal
    descriptor = os.dup(theirs)
    row = StatusRow(descriptor)
    row.show("a")
    written(ours)
    with (tmp_path / "data").open("wb") as file:
        os.dup2(file.fileno(), descriptor)
        row.show("b")
        row.clear()
    os.close(descriptor)
    assert (tmp_path / "data").read_bytes() == b""
    row.show("c")  # a descriptor that is closed
    assert written(ours) == b""


def test_neither_files_nor_small_or_dumb_terminals_have_such_a_row(terminal, tmp_path):
    _, theirs = terminal
    assert can_show({"TERM": "xterm"}, theirs)
    assert not can_show({"TERM": "dumb"}, theirs)
    assert not can_show({}, theirs)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 2, 20, 0, 0))
    assert not can_show({"TERM": "xterm"}, theirs)
    with (tmp_path / "data").open("wb") as file:
        assert not can_show({"TERM": "xterm"}, file.fileno())


@pytest.mark.parametrize(
    ("done", "shown"),
    [
        (250_000_000, "samebits: digesting the data that was read, 25% of 1.0 GB (Ctrl-C skips it)"),
        (1_000_000_000, ""),
    ],
)
def test_the_digesting_of_much_data_is_shown_and_taken_away(terminal, monkeypatch, done, shown):
    """A small threshold stands for what takes long."""
    ours, theirs = terminal
    with os.fdopen(os.dup(theirs), "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        show_digesting(done, 1_000_000_000, least=1000)
        assert written(ours).decode() == f"\r\x1b[2K{shown}"


def test_the_digesting_of_little_data_is_not_shown(terminal, monkeypatch):
    ours, theirs = terminal
    with os.fdopen(os.dup(theirs), "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        show_digesting(10, 100)
        assert written(ours) == b""
