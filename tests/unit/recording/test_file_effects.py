"""The files of an earlier run that are noticed when they are read, and the effects of compiled code."""

from __future__ import annotations

import json
import os
import pathlib
import time

import pytest
import torch

from samebits._runtime.frames import LIBRARY, USER
from samebits.recording.probes import file_effects
from samebits.recording.probes.file_effects import EarlierFiles, EffectsProbe
from samebits.recording.settings import EarlierRun


@pytest.fixture
def read(tmp_path):
    """Does something while files are watched that were written before; gives what was noted."""
    begun = time.time_ns() - 10**9
    old = tmp_path / "old.txt"
    old.write_text("before")
    notes = tmp_path / "notes"

    def read(action):
        probe = EarlierFiles(EarlierRun(str(notes), begun, time.time_ns() + 1), (f"{tmp_path}/kept/",))
        time.sleep(0.02)  # the clock of a file system is coarse
        probe.install()
        try:
            action(old)
        finally:
            probe.remove()
        lines = notes.read_text().splitlines() if notes.exists() else []
        assert probe.any == bool(lines)
        return [json.loads(line) for line in lines]

    return read


def test_a_file_is_noted_once_with_the_line_that_read_it(read):
    def action(path):
        for _ in range(2):
            path.read_text()

    ((name, changed, file, line, function),) = read(action)
    assert name.endswith("old.txt")
    assert changed <= time.time_ns()
    assert pathlib.Path(file).name == pathlib.Path(__file__).name
    assert line == action.__code__.co_firstlineno + 2
    assert function.endswith("action")


@pytest.mark.parametrize(
    "action",
    [
        lambda path: open(path, "rb").close(),
        lambda path: open(os.fspath(path), "r+").close(),
        lambda path: open(os.fsencode(path), "a+").close(),
    ],
)
def test_every_way_to_read_counts(read, action):
    assert len(read(action)) == 1


def test_a_file_that_was_given_an_old_date_counts(tmp_path):
    begun = time.time_ns() - 10**9
    path, notes = tmp_path / "unpacked", tmp_path / "notes"
    path.write_text("from an archive")
    os.utime(path, (10**9, 10**9))
    probe = EarlierFiles(EarlierRun(str(notes), begun, time.time_ns() + 10**9), ())
    probe.install()
    try:
        path.read_text()
    finally:
        probe.remove()
    assert probe.any


@pytest.mark.parametrize(
    "action",
    [
        lambda path: open(path, "a").close(),
        lambda path: open(path, "w").close(),
        lambda path: open(path.with_name("new"), "x").close(),
        lambda path: (path.write_text("mine"), path.read_text()),
        lambda path: open(os.open(path, os.O_RDONLY)).close(),
        lambda _: open("/dev/null").close(),
        lambda _: open(__file__).close(),
    ],
)
def test_what_is_written_anew_appended_to_or_older_does_not(read, action):
    assert read(action) == []


def test_what_samebits_keeps_does_not(read, tmp_path):
    kept, beside = tmp_path / "kept" / "kernel.cubin", tmp_path / "kept-by-me"
    kept.parent.mkdir()
    for path in (kept, beside):
        path.write_text("machine code")
    noted = read(lambda _: (kept.read_text(), beside.read_text()))
    assert [name for name, *_ in noted] == [str(beside)]


def test_what_a_library_reads_while_it_is_imported_does_not(read, tmp_path, monkeypatch):
    (tmp_path / "some_library.py").write_text(f"open({str(tmp_path / 'old.txt')!r}).close()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("samebits._runtime.frames.FrameRanks.rank_of_file", _as_library)
    assert read(lambda _: __import__("some_library")) == []


def _as_library(_self, filename):
    return LIBRARY if filename.endswith("some_library.py") or "importlib" in filename else USER


def test_what_open_refuses_is_refused_as_before(read):
    def action(path):
        with pytest.raises(FileNotFoundError):
            open(path.with_name("missing"))  # noqa: SIM115
        with pytest.raises(TypeError):
            open()  # noqa: SIM115

    assert read(action) == []


@pytest.fixture
def looked(tmp_path):
    """Looks once, as at the first boundary, and gives what was noted."""

    def look() -> str:
        probe = EffectsProbe(str(tmp_path / "notes"), ())
        probe._watching = True  # without the audit hook, which would stay
        probe((), b"")
        probe.remove()
        return (tmp_path / "notes").read_text()

    return look


def test_nothing_is_open(looked):
    assert looked() == "none\n"


@pytest.mark.parametrize("kind", ["cuda", "xpu"])
def test_a_device_that_torch_uses(looked, monkeypatch, kind):
    monkeypatch.setattr(getattr(torch, kind), "is_initialized", lambda: True)
    assert looked() == "opened\n"


@pytest.mark.parametrize("target", ["/dev/nvidia0", "/dev/dri/renderD128", "/dev/kfd", "socket:[77]"])
def test_a_device_or_a_socket_that_a_library_has_opened(looked, monkeypatch, target):
    monkeypatch.setattr(file_effects, "_target", lambda name: target)
    assert looked() == "opened\n"


@pytest.mark.parametrize("target", ["/home/nvidia/data.bin", "/dev/null", "pipe:[77]"])
def test_a_file_that_is_read(looked, monkeypatch, target):
    monkeypatch.setattr(file_effects, "_target", lambda name: target)
    assert looked() == "none\n"


def test_a_library_that_fails_when_it_is_asked(looked, monkeypatch):
    def fail() -> bool:
        raise RuntimeError

    monkeypatch.setattr(torch.cuda, "is_initialized", fail)
    assert looked() == "unknown\n"
