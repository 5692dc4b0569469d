"""What `samebits.compare` returns is made of words and plain values."""

from __future__ import annotations

import json

from report_builders import different, finding, identical

from samebits.records.notes import Note, NoteCode
from samebits.report import json as json_report
from samebits.report.compared import ComparedRecords
from samebits.report.reasons import sentence_or_none

NOTES = (Note.of(NoteCode.EXCLUDED, "w", "b"), Note.of(NoteCode.COMPILED, "2"))


def test_notes_are_the_sentences_of_the_report() -> None:
    result = ComparedRecords(identical(notes=NOTES).comparison, "identical")

    assert result.notes == (
        "left out of the comparison: w, b",
        "torch.compile made 2 graph(s): compiled code is recorded by step, not by op",
    )


def test_it_says_what_differs() -> None:
    comparison = different(finding(), first_step=3).comparison
    result = ComparedRecords(comparison, "different")

    assert (result.verdict, result.identical) == ("different", False)
    assert (result.reason, result.steps, result.first_step) == (
        sentence_or_none(comparison.reason),
        comparison.steps,
        3,
    )


def test_its_dictionary_is_the_json_object() -> None:
    """Of plain values only: what JSON gives back is equal."""
    comparison = different(finding(), notes=NOTES).comparison
    fields = ComparedRecords(comparison, "different").to_dict()

    assert fields == json.loads(json_report.render(comparison))
    assert {type(fields[name]) for name in ("verdict", "notes", "final_digest")} == {str, list}
    assert fields["notes"][0] == "left out of the comparison: w, b"


def test_the_report_is_its_text() -> None:
    result = ComparedRecords(identical().comparison, "identical: <2> runs\nmore")

    assert str(result) == "identical: <2> runs\nmore"
    assert repr(result) == "<ComparedRecords: identical: <2> runs>"
    assert "identical</b>: &lt;2&gt; runs" in result._repr_html_()
