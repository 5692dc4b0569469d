"""What is filled in on the command line of a run."""

from __future__ import annotations

import os

import pytest

from samebits.commands.resume_check.runs import NothingFoundError, fill_in, split_words
from samebits.errors import SamebitsError


def touch(folder, name, moment):
    """A file that was changed at that moment."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    os.utime(path, ns=(moment, moment))


def test_the_newest_by_time_then_by_number(tmp_path):
    """`step-10` comes after `step-9` where both were changed at once."""
    touch(tmp_path, "ck/step-9.pt", 5)
    touch(tmp_path, "ck/step-10.pt", 5)
    touch(tmp_path, "ck/step-99.pt", 4)

    assert fill_in(["--from={newest:ck/*.pt}"], tmp_path) == ("--from=ck/step-10.pt",)


def test_a_link_that_leads_nowhere_does_not_match(tmp_path):
    """`last.pt` leads to a checkpoint that the script deleted before it was killed."""
    touch(tmp_path, "ck/a.pt", 5)
    (tmp_path / "ck" / "last.pt").symlink_to("gone.pt")

    assert fill_in(["{newest:ck/*.pt}"], tmp_path) == ("ck/a.pt",)
    with pytest.raises(NothingFoundError):
        fill_in(["{newest:ck/l*.pt}"], tmp_path)


def test_folder_and_step(tmp_path):
    """Other braces are left alone, and so is `{step}` where there is none."""
    assert fill_in(["{run}/a", "{step}", "{other}", "{"], tmp_path, 7) == (
        f"{tmp_path}/a",
        "7",
        "{other}",
        "{",
    )
    assert fill_in(["{step}"], tmp_path) == ("{step}",)


def test_nothing_matches(tmp_path):
    """The pattern is told."""
    with pytest.raises(NothingFoundError, match=r"ck/\*"):
        fill_in(["{newest:ck/*}"], tmp_path)


def test_words_are_split_as_by_a_shell():
    """An open quote is refused."""
    assert split_words("--a 'b c' \"\"") == ("--a", "b c", "")
    with pytest.raises(SamebitsError, match="No closing quotation"):
        split_words("'")
