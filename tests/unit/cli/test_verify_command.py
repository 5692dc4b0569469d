"""What `samebits verify` prints, whatever ends it."""

from __future__ import annotations

import json

import pytest

from samebits.cli import verify as command
from samebits.cli.main import main
from samebits.comparison.results import Comparison
from samebits.diagnosis.patches.edits import Patch, PatchedFile
from samebits.diagnosis.patches.source_file import SourceFile
from samebits.verification import Verification
from samebits.verification.fix_results import Fix

DIFFERENT = Comparison("different", "the state differs at step 2", 3)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Gives a result to the command in the place of a verification, and its words."""
    monkeypatch.chdir(tmp_path)

    def run(result, *words):
        monkeypatch.setattr(command, "verify", lambda *_, **__: result)
        return main(["verify", *words, "train.py"])

    return run


def test_what_is_known_is_printed_before_an_interrupt_ends_it(run, capsys):
    status = run(Verification(DIFFERENT, ("train.py",), (), 0.0, interrupted=True))
    shown = capsys.readouterr()
    assert status == 130
    assert shown.out.startswith("different: the state differs at step 2")
    assert shown.err == "samebits: interrupted; what was recorded so far is kept\n"


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_diff_that_cannot_be_written_does_not_take_the_verdict_with_it(run, capsys, tmp_path, words):
    file = PatchedFile(SourceFile("/w/a.py", b"x = 1\n"), SourceFile("/w/a.py", b"x = 2\n"))
    result = Verification(
        DIFFERENT, ("train.py",), (), 0.0, fix=Fix(Patch((file,), ("why",)), "/w", 1, confirmed=True)
    )
    status = run(result, "--fix", "--keep", str(tmp_path / "missing"), *words)
    shown = capsys.readouterr()
    assert status == 2
    assert "cannot write" in shown.err
    if words:
        assert json.loads(shown.out)["fix"]["confirmed"] is True
    else:
        assert "+x = 2" in shown.out
