"""Where records go by default."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from samebits.recording.naming import make_next_free, next_free, target_name
from samebits.recording.runner import Target


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (Target("a/train.py", None, ()), "train"),
        (Target(None, "package.train", ()), "package.train"),
        (Target("we ird$.py", None, ()), "we_ird_"),
        (Target(".", None, ()), "script"),
    ],
)
def test_target_name(target, name):
    """A file name, whatever the script is called."""
    assert target_name(target) == name


def test_next_free_is_beyond_all_in_use(tmp_path):
    """A gap is not filled: the highest number is the newest record."""
    assert next_free(tmp_path / "none", "train", ".sbr").name == "train-1.sbr"
    for name in ("train-1.sbr", "train-7.sbr", "train-9.txt", "train-x.sbr", "other-8.sbr"):
        (tmp_path / name).touch()

    assert next_free(tmp_path, "train", ".sbr").name == "train-8.sbr"


def test_a_folder_is_never_given_twice(tmp_path):
    """Whoever asks while others do gets a folder of its own, beyond those in use."""
    (tmp_path / "test-4").mkdir()
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: make_next_free(tmp_path, "test"), range(64)))

    assert {path.name for path in made} == {f"test-{number}" for number in range(5, 69)}
    assert all(path.is_dir() for path in made)


def test_a_folder_that_appears_meanwhile_is_passed_over(tmp_path, monkeypatch):
    """Another process takes the number after it was chosen, and before the folder is made."""
    for name in ("test-1", "test-2"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("samebits.recording.naming._next_number", lambda *_: 1)

    assert make_next_free(tmp_path, "test").name == "test-3"
