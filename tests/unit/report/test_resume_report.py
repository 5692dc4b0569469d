"""The report of a resume check says each thing once."""

from __future__ import annotations

from samebits._runtime.frames import Site
from samebits.commands.resume_check.runs import FirstDifference, Kill, Omission, ResumeCheck
from samebits.records.notes import Note, NoteCode
from samebits.report.resume_text import render
from samebits.report.style import Style

STYLE = Style(width=90)


NOTE = Note.of(NoteCode.GENERATORS_IDLE, "NumPy's global generator")


def shown(verdict: str, reason: str, *kills: Kill) -> str:
    """The report on one line: how it is wrapped does not matter here."""
    result = ResumeCheck(verdict, reason, ("train.py",), 10, kills, (), 1.0)
    return " ".join(render(result, STYLE, "/code").split())


def test_a_reason_is_said_once():
    """In the headline, not again in the table, whose other rows keep theirs."""
    first, second = "the run resumed after 4 steps failed: KeyError: 'm'", "it made no optimizer step"

    text = shown(
        "not_judged", first, *(Kill(n, "not_judged", r) for n, r in ((4, first), (6, second), (7, second)))
    )

    assert (text.count(first), text.count(second)) == (1, 1)
    assert text.count("not judged") == 4


def test_a_difference_is_named_once():
    """What differs is a row of its own only where it says more than the title."""
    loss = FirstDifference(3, "loss", "the loss", Site("/code/train.py", 7, "main"))
    state = FirstDifference(3, "step", "parameter weight and 2 more", None)

    assert "what differs" not in shown("different", "x", Kill(4, "different", "x", difference=loss))
    assert "what differs parameter weight" in shown(
        "different", "x", Kill(4, "different", "x", difference=state)
    )


def test_a_note_on_several_kills_is_one():
    """With the steps after which they were killed."""
    lost = Omission("scheduler", "the scheduler has no state")
    kills = [Kill(n, "identical", omissions=(lost,), notes=(NOTE,)) for n in (2, 5, 7)]

    text = shown("identical", "3 kills", *kills)

    assert text.count(lost.text) == 1
    words = "not restored, but nothing drew from it later: NumPy's global generator"
    assert f"killed after 2, 5 and 7 steps: {words}" in text
