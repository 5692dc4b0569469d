"""Variables whose names are misspelt."""

from __future__ import annotations

import pytest

from samebits._text.variable_names import NO_DEFAULTS, OWN
from samebits.cli.main import main
from samebits.cli.unknown_variables import unknown_variables


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("SAMEBITS_SED", "SAMEBITS_SEED"),
        ("SAMEBITS_RUN_ONDRIFT", "SAMEBITS_RUN_ON_DRIFT"),
        ("SAMEBITS_seed", "SAMEBITS_SEED"),
        ("SAMEBITS_CASHE", "SAMEBITS_CACHE"),
    ],
)
def test_a_misspelt_variable_is_told_with_the_nearest_name(name, near):
    (line,) = unknown_variables("run", {name: "3", "HOME": "/"})
    assert line.startswith(f"unknown variable {name} ")
    assert f"did you mean {near}?" in line
    assert "3" not in line  # values may be secret


def test_known_variables_are_not_told():
    """Those of other commands, those that samebits has for something else, those of other programs."""
    known = dict.fromkeys(OWN - {NO_DEFAULTS}, "1")
    others = {"SAMEBITS_SEED": "1", "SAMEBITS_VERIFY_RUNS": "3", "samebits": "", "XSAMEBITS_SED": "1"}
    assert unknown_variables("run", {**known, **others}) == ()


def test_without_defaults_nothing_is_told():
    assert unknown_variables("run", {"SAMEBITS_SED": "1", NO_DEFAULTS: "1"}) == ()


def test_one_line_on_stderr(monkeypatch, capsys):
    monkeypatch.setenv("SAMEBITS_OLDER_THEN", "3")
    assert main(["clean"]) == 0
    told = capsys.readouterr()
    assert told.err.count("SAMEBITS_OLDER_THEN") == 1
    assert "did you mean SAMEBITS_OLDER_THAN?" in told.err
    assert "SAMEBITS_OLDER_THEN" not in told.out
