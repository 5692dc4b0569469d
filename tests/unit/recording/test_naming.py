"""Where records go by default."""

from __future__ import annotations

import pytest

from samebits.recording.naming import next_free, target_name
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
