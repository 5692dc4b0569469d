"""The folder for records that a call of the pytest fixture is judged in."""

from __future__ import annotations

import os

import pytest

from samebits.errors import SamebitsError
from samebits.pytest_plugin.fresh_runs import CallSite, report_of
from samebits.pytest_plugin.repeated_call import Start


@pytest.fixture
def site(tmp_path):
    """A call in a pytest that was started in a folder of its own."""
    start = Start(str(tmp_path), (), (), dict(os.environ))
    return CallSite(start, f"{tmp_path}/test_it.py::test_it", "test_it.py::test_it", 1)


def test_calls_at_the_same_time_have_folders_of_their_own(site, tmp_path):
    """As in two workers that run one test: the other begins while the first is judged."""
    folders = []

    def judge(folder):
        folders.append(folder)
        if len(folders) == 1:
            assert report_of(site, judge) == "found"
        (folder / "run-1.sbr").touch(exist_ok=False)
        return "found"

    assert report_of(site, judge) == "found"
    assert [folder.name for folder in folders] == ["test_it.py_test_it-1", "test_it.py_test_it-2"]
    assert all((folder / "run-1.sbr").exists() for folder in folders)
    assert (tmp_path / ".samebits" / ".gitignore").read_text() == "*\n"


def test_a_call_that_is_not_judged_leaves_no_empty_folder(site, tmp_path):
    """An error before the first run leaves no records, so no folder either."""

    def judge(folder):
        raise SamebitsError("no entry", slug="lock-entry")

    assert report_of(site, judge).startswith("no entry")
    assert [path.name for path in (tmp_path / ".samebits").iterdir()] == [".gitignore"]


def test_a_folder_that_cannot_be_made_is_the_report(site, tmp_path):
    """A file where the records go is one clear message, and no traceback."""
    (tmp_path / ".samebits").write_text("")

    report = report_of(site, str)

    assert report.startswith("cannot write .samebits/test_it.py_test_it: ")
    assert "record-unwritable" in report
