"""Listings of folders: what a script sees of them counts, and nothing else."""

from __future__ import annotations

import glob
import os
import pathlib

import pytest

from samebits.recording.probes import listings


class Log:
    """Notes the names of each listing, in place of a `DrawLog`."""

    active = True

    def __init__(self):
        self.seen = []

    def asker(self, frame, op):
        """Return what was given: all code is the user's."""
        return frame, op

    def site(self, _frame):
        """Return no site."""
        return

    def at(self, _op, _site, value):
        """Note names."""
        self.seen += value


@pytest.fixture
def seen(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    for name in ("c.txt", "d.csv", ".hidden", "sub/c.txt"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    log = Log()
    monkeypatch.setattr(os, "scandir", listings.scan(os.scandir, "os.scandir", log))
    return log.seen


@pytest.mark.parametrize(
    ("listing", "names"),
    [
        (lambda: glob.glob("c*.txt"), ["c.txt"]),
        (lambda: glob.glob(b"c*.txt"), [b"c.txt"]),
        (lambda: glob.glob(".h*"), [".hidden"]),
        (lambda: glob.glob("*"), ["c.txt", "d.csv", "sub"]),
        (lambda: glob.glob("s*/c.txt"), ["sub"]),
        (lambda: glob.glob("**", recursive=True), ["c.txt", "c.txt", "d.csv", "sub"]),
        (lambda: [entry.name for entry in os.scandir()], [".hidden", "c.txt", "d.csv", "sub"]),
        (lambda: next(os.walk(".")), [".hidden", "c.txt", "d.csv", "sub"]),
        (lambda: list(pathlib.Path().glob("c*.txt")), ["c.txt"]),
        (lambda: list(pathlib.Path().glob("s*/c.txt")), ["sub"]),
    ],
)  # fmt: skip
def test_the_names_that_a_pattern_takes_are_noted(seen, listing, names):
    """Other files of the folder, such as records, are none of the script's business."""
    listing()
    assert sorted(seen) == names


def test_files_that_no_pattern_names_change_no_listing(seen):
    glob.glob("c*.txt")
    first = list(seen)
    seen.clear()
    pathlib.Path("samebits.lock").touch()
    glob.glob("c*.txt")
    assert seen == first
