"""What `samebits clean` removes, and what it leaves."""

from __future__ import annotations

import os

import pytest

from samebits.cli.main import main
from samebits.recording.session import RecordingSession
from samebits.recording.settings import RecordingSettings


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with records of every kind, and files that only look like them."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / ".samebits"
    for name in (
        "a-verify-1/run-1.sbr",
        "a-resume-2/whole.sbr",
        "b-3.ranks/rank-0.sbr",
        "a-1.sbr",
        "a-1.sbr-log",
        "a-1.children/worker-1.sbr",
    ):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(b"x" * 500_000)
    for name in ("spread/kept", "mine.txt", ".gitignore", "verify/kept"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).touch()
    return place


def left(folder):
    """Names in the folder."""
    return sorted(path.name for path in folder.iterdir())


KEPT = [".gitignore", "mine.txt", "spread", "verify"]


def test_records_go_and_everything_else_stays(folder, capsys):
    assert main(["clean"]) == 0
    assert left(folder) == KEPT
    assert "3.0 MB removed" in capsys.readouterr().out


def test_dry_run_removes_nothing(folder, capsys):
    before = left(folder)
    assert main(["clean", "--dry-run"]) == 0
    assert left(folder) == before
    assert "a-verify-1  0.5 MB" in capsys.readouterr().out


def test_what_is_younger_stays(folder):
    os.utime(folder / "a-verify-1", (1, 1))
    assert main(["clean", "--older-than", "7"]) == 0
    assert left(folder) == sorted(
        [*KEPT, "a-1.children", "a-1.sbr", "a-1.sbr-log", "a-resume-2", "b-3.ranks"]
    )


def test_what_a_run_is_writing_stays(folder, capsys):
    """By its log, which names the process that writes it; here this one."""
    for place in ("live-1.sbr", "live-verify-2/run-1.sbr"):
        (folder / place).parent.mkdir(exist_ok=True)
        session = RecordingSession(RecordingSettings(record=str(folder / place)), ("train.py",))
        session.writer.flush()

    assert main(["clean"]) == 0

    assert left(folder) == sorted([*KEPT, "live-1.sbr", "live-1.sbr-log", "live-verify-2"])
    assert "live-1.sbr  not removed: a run is writing it" in capsys.readouterr().out


def test_days_that_are_none(folder, capsys):
    before = left(folder)
    assert main(["clean", "--older-than", "soon"]) == 2
    assert "expected a number of days above 0, found 'soon'" in capsys.readouterr().err
    assert left(folder) == before


def test_links_are_left_alone_with_what_they_lead_to(folder, tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    (data / "precious").touch()
    (folder / "x-verify-9").symlink_to(data)
    (folder / "x-9.sbr").symlink_to(data / "precious")
    main(["clean"])
    assert (data / "precious").exists()
    assert left(folder) == sorted([*KEPT, "x-9.sbr", "x-verify-9"])
    other = tmp_path / "other"
    other.mkdir()
    (other / ".samebits").symlink_to(folder)
    (folder / "y-1.sbr").touch()
    monkeypatch.chdir(other)
    assert main(["clean"]) == 0
    assert (folder / "y-1.sbr").exists()


def test_a_folder_without_records_is_no_error(tmp_path, monkeypatch, capsys):
    """It says that there is nothing to remove."""
    monkeypatch.chdir(tmp_path)
    assert main(["clean"]) == 0
    assert capsys.readouterr().out == "no records to remove in .samebits\n"
