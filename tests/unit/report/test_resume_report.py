"""The report of a resume check says each thing once."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from samebits._runtime.frames import Site
from samebits.commands.resume_check.runs import Ending, Kill, ResumeCheck
from samebits.commands.resume_facts import DifferenceKind, Fact, FactCode, FirstDifference, Omission, Part
from samebits.comparison.reasons import Reason, ReasonCode
from samebits.records.kinds import Role
from samebits.records.notes import Note, NoteCode
from samebits.report import resume_json
from samebits.report.reasons import sentence
from samebits.report.resume_reasons import RESUME_SENTENCES
from samebits.report.resume_text import render
from samebits.report.style import Style

STYLE = Style(width=90)

LOSS = FirstDifference(3, DifferenceKind.LOSS, Fact.of(FactCode.LOSS))
NOTE = Note.of(NoteCode.GENERATORS_IDLE, "numpy")


def shown(verdict: str, reason: Reason, *kills: Kill) -> str:
    """The report on one line: how it is wrapped does not matter here."""
    result = ResumeCheck(verdict, reason, 10, kills, (), 1.0)
    return " ".join(render(result, STYLE, "/code").split())


def test_a_reason_is_said_once():
    """In the headline, not again in the table, whose other rows keep theirs."""
    first = Reason.of(ReasonCode.RESUMED_RUN_FAILED, 4, Ending(1, "KeyError: 'm'"))
    second = Reason.of(ReasonCode.RESUMED_WITHOUT_STEP, 6)

    text = shown(
        "not_judged", first, *(Kill(n, "not_judged", r) for n, r in ((4, first), (6, second), (7, second)))
    )

    assert text.count("the run resumed after 4 steps failed: KeyError: 'm' (exit status 1)") == 1
    assert text.count("made no optimizer step") == 1
    assert text.count("not judged") == 4


def test_a_difference_is_named_once():
    """What differs is a row of its own only where it says more than the title."""
    loss = replace(LOSS, site=Site("/code/train.py", 7, "main"))
    weight = Fact.of(FactCode.TENSOR, Role.PARAM, "weight", 2, False)
    state = FirstDifference(3, DifferenceKind.STEP, weight)

    def text(difference: FirstDifference) -> str:
        reason = Reason.of(ReasonCode.RESUMED_DIFFERS, 4, False, difference)
        return shown("different", reason, Kill(4, "different", reason, difference=difference))

    assert "what differs" not in text(loss)
    assert "what differs parameter weight" in text(state)


def test_a_note_on_several_kills_is_one():
    """With the steps after which they were killed."""
    fact = Fact.of(FactCode.SETTINGS_DIFFER, ("GradScaler scale", "1.0", "4.0"))
    lost = Omission(Part.SCALER, fact)
    kills = [Kill(n, "identical", omissions=(lost,), notes=(NOTE,)) for n in (2, 5, 7)]

    text = shown("identical", Reason.of(ReasonCode.KILLS_IDENTICAL, 3, 0), *kills)

    words = "not restored, but it made no difference: GradScaler scale is 1.0, not 4.0"
    assert f"killed after 2, 5 and 7 steps: {words}" in text
    assert text.count("GradScaler") == 1
    words = "not restored, but nothing drew from it later: NumPy's global generator"
    assert f"killed after 2, 5 and 7 steps: {words}" in text


SAID = {
    ReasonCode.WHOLE_RUN_FAILED: (
        ("a.py", Ending(1, "ValueError: no")),
        "the whole run of a.py failed: ValueError: no (exit status 1)",
    ),
    ReasonCode.NO_OPTIMIZER_STEP: (
        ("a.py",), "a.py made no optimizer step (`Optimizer.step`): nothing to compare",
    ),
    ReasonCode.KILL_NOT_REACHED: (
        (4, Ending(0)),
        "the run that was to be killed after 4 steps ended with exit status 0: it did not get that far",
    ),
    ReasonCode.KILLED_RUN_DIFFERS: (
        (LOSS,),
        ("the script itself does not repeat: before the kill it differs from the whole run at step 3 (the "
        "loss); use `samebits verify` first"),
    ),
    ReasonCode.WHOLE_RUNS_DIFFER: (
        (LOSS,),
        ("the script itself does not repeat: a second whole run differs at step 3 (the loss); use `samebits "
        "verify` first"),
    ),
    ReasonCode.NO_FILE_TO_RESUME: (
        (4, "c/*.pt", ("a", "b", "c", "d", "e")),
        "after 4 steps there is no file c/*.pt: the killed run had written a, b, c, d and 1 more",
    ),
    ReasonCode.RESUMED_RUN_FAILED: (
        (1, Ending(137, has_record=False)),
        "the run resumed after 1 step ended by SIGKILL and left no record",
    ),
    ReasonCode.RESUMED_WITHOUT_STEP: (
        (4,),
        ("the run resumed after 4 steps made no optimizer step: did it find a checkpoint of another run, "
        "outside the working folder? (see docs/reference/resume-check.md)"),
    ),
    ReasonCode.RESUMED_WITHOUT_PARAMETERS: (
        (4,), "the run resumed after 4 steps has no parameters that could be compared",
    ),
    ReasonCode.RESUMED_TOO_FAR: (
        (4, 6),
        ("killed after 4 steps, but the resumed run begins at step 6: it found a checkpoint of another run, "
        "outside the working folder; let the script save into `{run}` (see docs/reference/resume-check.md)"),
    ),
    ReasonCode.RESUMED_NOWHERE: (
        (4,), "resumed after 4 steps, its parameters match no step of the whole run",
    ),
    ReasonCode.RESUMED_DIFFERS: (
        (4, False, LOSS), "resumed after 4 steps, it differs from step 3 on: the loss",
    ),
    ReasonCode.NOTHING_RESUMED: (
        (4, ()),
        ("after 4 steps nothing was resumed: the run began from the beginning (the killed run had written no "
        "file into its folder)"),
    ),
    ReasonCode.KILLS_IDENTICAL: (
        (2, 1),
        ("after 2 kills the resumed run gave the same bits; after 1 more the script started from the "
        "beginning, as it had saved nothing yet"),
    ),
    ReasonCode.NO_RUN_KILLED: ((), "no run was killed"),
    ReasonCode.NO_RUN_RESUMED: ((), "interrupted before a run was resumed"),
}  # fmt: skip


@pytest.mark.parametrize("code", RESUME_SENTENCES)
def test_each_reason_is_said(code):
    """From its arguments, word for word."""
    arguments, words = SAID[code]

    assert sentence(Reason.of(code, *arguments)) == words


def test_how_a_run_ended_is_said():
    """Or that it did not."""
    endings = (Ending(0, seconds=61.7), Ending(3))
    said = [sentence(Reason.of(ReasonCode.WHOLE_RUN_FAILED, "a.py", ending)) for ending in endings]

    assert said == [
        "the whole run of a.py did not end in 62 s",
        "the whole run of a.py ended with exit status 3",
    ]
    fresh = Reason.of(ReasonCode.RESUMED_DIFFERS, 4, True, LOSS)
    assert sentence(fresh) == "after 4 steps nothing was resumed, and it differs from step 3 on: the loss"


def test_where_the_parameters_match_nothing_the_files_are_listed():
    """In the text and in the JSON object."""
    reason = Reason.of(ReasonCode.RESUMED_NOWHERE, 4)
    start = FirstDifference(None, DifferenceKind.START, Fact.of(FactCode.FIRST_PARAMETERS))
    lost = Omission(Part.PARAMETERS, Fact.of(FactCode.PARAMETERS_OF_NO_STEP))
    kill = Kill(4, "different", reason, difference=start, omissions=(lost,), written=("last.pt",))

    found = json.loads(resume_json.render(ResumeCheck("different", reason, 10, (kill,), (), 1.0)))

    words = "the killed run had written last.pt"
    assert words in shown("different", reason, kill)
    assert found["kills"][0]["not_restored"][0]["evidence"] == [words]
    assert found["kills"][0]["reason"] == found["reason"] == sentence(reason)
