"""The user's files: a patch is written to all of them or to none; files that an earlier run left."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
from sentence_support import text_reason

from samebits.comparison.results import Comparison
from samebits.diagnosis.patches.edits import Patch, PatchedFile, SourceFile
from samebits.errors import SamebitsError
from samebits.verification import user_files as applying
from samebits.verification.results import Fix
from samebits.verification.user_files import apply, blamed, write_diff


@pytest.fixture
def fix(tmp_path):
    """A patch of two files."""
    files = []
    for name in ("a.py", "b.py"):
        path = tmp_path / name
        path.write_bytes(b"x = 1\n")
        path.chmod(0o754)
        files.append(PatchedFile(SourceFile(str(path), b"x = 1\n"), SourceFile(str(path), b"x = 2\n")))
    return Fix(Patch(tuple(files), ("why",)), str(tmp_path), 3, confirmed=True)


def contents(fix):
    return [Path(file.before.path).read_bytes() for file in fix.patch.files]


def test_all_files_are_written_and_keep_their_mode(fix, tmp_path):
    assert apply(fix).applied
    assert contents(fix) == [b"x = 2\n"] * 2
    assert stat.S_IMODE((tmp_path / "a.py").stat().st_mode) == 0o754
    assert sorted(os.listdir(tmp_path)) == ["a.py", "b.py"]


def test_a_link_stays_a_link(fix, tmp_path):
    (tmp_path / "a.py").rename(tmp_path / "real.py")
    (tmp_path / "a.py").symlink_to(tmp_path / "real.py")
    apply(fix)
    assert (tmp_path / "a.py").is_symlink()
    assert (tmp_path / "real.py").read_bytes() == b"x = 2\n"


def test_a_file_that_was_changed_is_refused(fix, tmp_path):
    (tmp_path / "b.py").write_bytes(b"x = 3\n")
    with pytest.raises(SamebitsError) as caught:
        apply(fix)
    assert caught.value.slug == "fix-file-changed"
    assert contents(fix) == [b"x = 1\n", b"x = 3\n"]


def test_a_file_outside_of_the_project_is_refused(fix, tmp_path):
    outside = Fix(fix.patch, str(tmp_path / "project"), confirmed=True)
    with pytest.raises(SamebitsError) as caught:
        apply(outside)
    assert caught.value.slug == "fix-outside-project"
    assert contents(fix) == [b"x = 1\n"] * 2


def test_where_the_second_cannot_be_written_the_first_is_put_back(fix, tmp_path, monkeypatch):
    replaced = applying._replace

    def fail(path, data):
        if path.endswith("b.py"):
            raise OSError(28, "No space left on device")
        replaced(path, data)

    monkeypatch.setattr(applying, "_replace", fail)
    with pytest.raises(SamebitsError) as caught:
        apply(fix)
    assert caught.value.slug == "fix-unwritable"
    assert "No space left" in str(caught.value)
    assert contents(fix) == [b"x = 1\n"] * 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_cannot_be_written_is_refused(fix, tmp_path):
    (tmp_path / "b.py").chmod(0o444)
    with pytest.raises(SamebitsError) as caught:
        apply(fix)
    assert caught.value.slug == "fix-unwritable"
    assert contents(fix) == [b"x = 1\n"] * 2


def test_the_diff_is_written_beside_the_records(fix, tmp_path):
    written = write_diff(fix, tmp_path)
    assert Path(written.diff_file).read_bytes() == fix.diff
    assert write_diff(Fix(None, str(tmp_path)), tmp_path).diff_file == ""


def test_runs_of_other_lengths_have_no_event_that_could_be_blamed():
    comparison = Comparison("different", text_reason("the runs made different numbers of steps, 7 and 9"), 7)
    assert blamed(comparison, (SimpleNamespace(path="cache.json", site=None),)) == comparison
