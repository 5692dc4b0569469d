"""A bug of samebits has an exit status of its own and never takes a verdict with it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from sentence_support import reason_of, text_reason

from samebits.cli import verify as command
from samebits.cli.main import main
from samebits.comparison import verdict as comparing
from samebits.comparison.results import Comparison
from samebits.errors import EXIT_INTERNAL_ERROR
from samebits.verification import Verification

DIFFERENT = Comparison("different", text_reason("the state differs at step 2"), 3, state="different")
TRACE = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\nRecursionError: too deep\n'


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs `samebits verify` with something in the place of the verification."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".samebits").mkdir()

    def run(verify, *words):
        monkeypatch.setattr(command, "verify", verify)
        return main(["verify", *words, "train.py"])

    return run


def _fails(*_, **__):
    raise RecursionError("maximum recursion depth exceeded")


def _kept(text):
    return Path(re.search(r"the details are in (\S+)", text)[1])


def test_a_bug_without_a_verdict_has_its_own_status_and_keeps_the_traceback(run, capsys):
    status = run(_fails)
    shown = capsys.readouterr()
    assert status == EXIT_INTERNAL_ERROR == 3
    assert not shown.out
    assert "internal error (RecursionError: maximum recursion depth exceeded): please report" in shown.err
    assert "Traceback" not in shown.err
    path = _kept(shown.err)
    assert "RecursionError" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_who_asked_for_json_gets_an_object(run, capsys):
    assert run(_fails, "--json") == 3
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == found["state"] == "not_judged"
    assert found["internal_error"] == "RecursionError: maximum recursion depth exceeded"


def test_a_verdict_that_was_reached_is_printed_first(run, capsys):
    result = Verification(replace(DIFFERENT, failure=TRACE), ("train.py",), (), 0.0)
    status = run(lambda *_, **__: result)
    shown = capsys.readouterr()
    assert status == 3
    assert shown.out.startswith("different: the state differs at step 2")
    assert "RecursionError: too deep" in shown.err
    assert TRACE in _kept(shown.err).read_text()


def test_the_object_has_the_verdict_and_the_error(run, capsys):
    result = Verification(replace(DIFFERENT, failure=TRACE), ("train.py",), (), 0.0)
    assert run(lambda *_, **__: result, "--json") == 3
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "different"
    assert found["internal_error"] == "RecursionError: too deep"


def test_comparing_two_records_keeps_the_verdict_when_the_search_fails(monkeypatch):
    class Record:
        info = type("Info", (), {"level": "op", "environment": {}})

    monkeypatch.setattr(comparing, "judge", lambda *_: DIFFERENT)
    monkeypatch.setattr(comparing, "find_origins", _fails)
    found = comparing.compare(Record(), Record())
    assert (found.verdict, reason_of(found)) == ("different", reason_of(DIFFERENT))
    assert "RecursionError" in found.failure
