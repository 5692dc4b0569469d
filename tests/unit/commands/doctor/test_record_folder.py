"""Where records would go: tried, and left as it was."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from samebits.commands.doctor.collect import check_record_folder


@pytest.fixture(autouse=True, scope="module")
def _names():
    """`tempfile` makes its names when it first needs one, and keeps what makes them."""
    with tempfile.TemporaryDirectory():
        yield


def test_an_ordinary_folder(tmp_path):
    """Writable, with room, and nothing is left behind."""
    folder = check_record_folder(tmp_path, tmp_path)

    assert folder.unwritable == ""
    assert folder.free_bytes > 0
    assert folder.git == "none"
    assert list(tmp_path.iterdir()) == []


def test_a_repository_of_another_user(tmp_path, monkeypatch):
    """Containers often run as another user than the one who has the code; git then answers nothing."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert check_record_folder(tmp_path, tmp_path).git == "none"
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own, for its tests
    assert check_record_folder(tmp_path, tmp_path).git == "distrusted"


def test_records_in_the_way(tmp_path):
    """A file stands where the folder should be."""
    (tmp_path / ".samebits").write_text("")

    assert check_record_folder(tmp_path, tmp_path).unwritable == "Not a directory"


def test_a_folder_that_is_gone(tmp_path):
    """The working directory was removed meanwhile."""
    folder = check_record_folder(tmp_path / "gone", tmp_path / "gone")

    assert folder.unwritable == "No such file or directory"
    assert folder.free_bytes == 0


def test_a_folder_that_refuses():
    """The kernel's own file systems cannot be written, not even by root."""
    if not Path("/proc/self").exists():
        pytest.skip("no /proc")

    assert check_record_folder(Path("/proc"), Path("/proc")).unwritable != ""


def test_git(tmp_path, monkeypatch):
    """No commit, clean, changed, and no git at all."""

    def git(*words):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    if shutil.which("git") is None:
        pytest.skip("no git")
    git("init")
    assert check_record_folder(tmp_path, tmp_path).git == "none"
    (tmp_path / "a.py").write_text("1")
    git("add", "a.py")
    git("commit", "-m", "a")
    assert check_record_folder(tmp_path, tmp_path).git == "clean"
    (tmp_path / "a.py").write_text("2")
    assert check_record_folder(tmp_path, tmp_path).git == "changed"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check_record_folder(tmp_path, tmp_path).git == "absent"
