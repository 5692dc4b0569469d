"""What `samebits verify` prints, whatever ends it."""

from __future__ import annotations

import json
from dataclasses import replace

import finding_support
import pytest
from sentence_support import text_reason

from samebits._runtime.frames import Site
from samebits.cli import verify as command
from samebits.cli.main import main
from samebits.comparison.results import Comparison, Confirmation
from samebits.diagnosis.patches.edits import Patch, PatchedFile, SourceFile
from samebits.verification import Verification
from samebits.verification.results import Fix

DIFFERENT = Comparison("different", text_reason("the state differs at step 2"), 3)


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
    assert shown.err == "samebits: interrupted\n"  # nothing was recorded


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


@pytest.mark.parametrize(
    ("state", "words", "status"),
    [
        ("identical", (), 1),
        ("identical", ("--state-only",), 0),
        ("different", ("--state-only",), 1),
        ("not_judged", ("--state-only",), 1),
    ],
)
def test_values_that_are_only_reported_count_unless_the_state_is_asked_for(run, capsys, state, words, status):
    result = Verification(replace(DIFFERENT, state=state), ("train.py",), (), 0.0)
    assert run(result, "--json", *words) == status
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["state"]) == ("different", state)


def test_what_could_not_be_judged_is_not_judged_by_its_state(run):
    result = Verification(Comparison("not_judged", text_reason("it failed"), 3), ("train.py",), (), 0.0)
    assert run(result, "--state-only") == 2


def finding(**fields):
    """An origin."""
    site = Site("/w/train.py", 3, "main")
    values = {"cause": "unseeded-numpy", "outputs": ("f32[4]",), "origin_kind": "outside", **fields}
    return finding_support.finding(step=2, op="aten::add.Tensor", site=site, inputs_equal=True, **values)


@pytest.fixture
def stages(tmp_path, monkeypatch):
    """Tells the command one result after the other, and gives it the last."""
    monkeypatch.chdir(tmp_path)

    def run(comparisons, *words, **fields):
        results = [
            Verification(each, ("train.py",), (), 3.0, localised=n > 0) for n, each in enumerate(comparisons)
        ]
        results[-1] = replace(results[-1], **fields)

        def verify(*_, tell, **__):
            for result in results[:-1]:
                if tell is not None:
                    tell(result)
            return results[-1]

        monkeypatch.setattr(command, "verify", verify)
        return main(["verify", *words, "train.py"])

    return run


LIKELY = replace(DIFFERENT, findings=(finding(),))
PROVEN = replace(DIFFERENT, findings=(finding(confirmed_by=Confirmation(("clock",), 1, 1)),))


def test_each_part_of_the_report_is_printed_once_and_the_proof_after_the_first_answer(stages, capsys):
    assert stages([DIFFERENT, LIKELY, PROVEN]) == 1
    out = capsys.readouterr().out
    for once in (
        "different: the state",
        "first difference: step 2",
        "what came out",
        "likely cause",
        "1 pair",
    ):
        assert out.count(once) == 1, (once, out)
    first, proof = out.split("\n\n  cause ")
    assert "likely cause  unseeded-numpy (not proven yet)" in first
    assert "unseeded-numpy" in proof


def test_an_origin_that_turns_out_to_be_another_is_printed_anew(stages, capsys):
    other = finding(cause="wall-clock", entered_site=Site("/w/train.py", 9, "main"))
    stages([DIFFERENT, LIKELY, replace(DIFFERENT, findings=(other,))])
    out = capsys.readouterr().out
    assert out.count("first difference") == 2
    assert out.count("different: the state") == 1


def test_a_verdict_that_changes_is_printed_anew(stages, capsys):
    assert stages([DIFFERENT, LIKELY, Comparison("identical", None, 3)]) == 0
    out = capsys.readouterr().out
    assert (
        out.index("different: ") < out.index("identical: 2")
        if "identical: 2" in out
        else "identical: " in out
    )


def test_quick_prints_the_likely_cause_once(stages, capsys):
    assert stages([DIFFERENT, LIKELY, LIKELY], "--quick", quick=True) == 1
    out = capsys.readouterr().out
    assert out.count("likely cause") == out.count("unseeded-numpy (not proven yet)") == 1
    assert "\n  cause " not in out


def test_json_is_one_object_whatever_is_known_before(stages, capsys):
    stages([DIFFERENT, LIKELY, PROVEN], "--json")
    assert json.loads(capsys.readouterr().out)["findings"][0]["cause"] == "unseeded-numpy"


def test_quick_and_fix_exclude_each_other(stages, capsys):
    assert stages([DIFFERENT], "--quick", "--fix") == 2
    assert "give one of them" in capsys.readouterr().err
