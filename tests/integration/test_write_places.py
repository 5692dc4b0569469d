"""The command line writes to regular files only, and makes no folder that the user did not name."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest
from cli_support import SEEDED, complaints, environment, samebits, write


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "train.py", SEEDED, STEPS=1)
    (tmp_path / "victim").write_bytes(b"precious")
    return tmp_path


def refused(result, *words: str) -> None:
    """One line that has these words; nothing was run."""
    assert result.returncode == 2, result.stderr
    lines = complaints(result.stderr)
    assert len(lines) == 1, result.stderr
    for word in words:
        assert word in lines[0]
    assert "see docs/reference/messages.md#record-unwritable" in result.stderr
    assert "Traceback" not in result.stderr
    assert "loss" not in result.stdout


@pytest.mark.parametrize("options", [(), ("--force",)], ids=["", "force"])
@pytest.mark.parametrize("kind", ["a symbolic link", "a FIFO", "a folder", "a device"])
def test_a_record_is_a_regular_file(folder, kind, options):
    """Also with --force, which replaces a record and nothing else."""
    record = folder / "a.sbr"
    if kind == "a symbolic link":
        record.symlink_to(folder / "victim")
    elif kind == "a FIFO":
        os.mkfifo(record)
    elif kind == "a folder":
        record.mkdir()
    else:
        record = "/dev/null"
    before = os.lstat(record)

    result = samebits("run", "--record", record, *options, "train.py", cwd=folder)

    refused(result, f"it is {kind}, expected a regular file")
    assert stat.S_IFMT(os.lstat(record).st_mode) == stat.S_IFMT(before.st_mode)
    assert (folder / "victim").read_bytes() == b"precious"


def test_sidecars_are_not_followed(folder):
    """SQLite writes a log beside the record, whatever has its name."""
    (folder / "a.sbr-wal").symlink_to(folder / "victim")
    result = samebits("run", "--record", "a.sbr", "train.py", cwd=folder)
    assert result.returncode == 2
    assert "a.sbr-wal (it is a symbolic link" in result.stderr
    assert (folder / "victim").read_bytes() == b"precious"


@pytest.mark.parametrize("command", [("run", "--record"), ("verify", "--keep"), ("resume-check", "--keep")])
def test_a_folder_that_is_missing_is_not_made(folder, command):
    words = ("{checkpoint}",) if command[0] == "resume-check" else ()
    options = ("--resume-args", "x") if command[0] == "resume-check" else ()
    result = samebits(*command, "no/dir/x.sbr", *options, "train.py", *words, cwd=folder)
    refused(result, "the folder", "no/dir does not exist; make it first")
    assert not (folder / "no").exists()


def test_the_folder_of_a_plot_is_not_made(folder):
    result = samebits("spread", "--seeds", "0..1", "--plot", "no/dir/x.png", "train.py", cwd=folder)
    refused(result, "no/dir does not exist; make it first")
    assert not (folder / "no").exists()


@pytest.mark.parametrize("command", ["run", "verify", "compare"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-", "<&- >&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_status(folder, command, closed):
    """As `samebits … >&-` in a shell."""
    samebits("run", "--record", "a.sbr", "train.py", cwd=folder)
    words = "a.sbr a.sbr" if command == "compare" else "train.py"
    line = f"{sys.executable} -m samebits {command} {words} {closed}"
    done = subprocess.run(["sh", "-c", line], cwd=folder, env=environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr


def test_the_folder_named_by_keep_is_made(folder):
    result = samebits("verify", "--keep", "kept", "train.py", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert (folder / "kept" / "run-1.sbr").is_file()


@pytest.mark.parametrize("target", ["nowhere", "victim"])
def test_gitignore_is_not_written_through_a_link(folder, target):
    (folder / ".samebits").mkdir()
    (folder / ".samebits" / ".gitignore").symlink_to(folder / target)
    result = samebits("run", "train.py", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert not (folder / "nowhere").exists()
    assert (folder / "victim").read_bytes() == b"precious"
    assert (folder / ".samebits" / ".gitignore").is_symlink()


def test_no_gitignore_appears_in_the_folder_that_a_link_leads_to(folder):
    """It would hide a whole project from git."""
    (folder / "project").mkdir()
    (folder / ".samebits").symlink_to(folder / "project")
    assert samebits("run", "train.py", cwd=folder).returncode == 0
    assert sorted(os.listdir(folder / "project")) == ["train-1.sbr"]


def test_records_are_for_their_owner(folder):
    """Whatever the umask: they hold what the user typed."""
    before = os.umask(0)
    try:
        assert samebits("verify", "train.py", cwd=folder).returncode == 0
    finally:
        os.umask(before)
    kept = [
        path for path in (folder / ".samebits").rglob("*") if path.is_file() and path.name != ".gitignore"
    ]
    assert kept
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
