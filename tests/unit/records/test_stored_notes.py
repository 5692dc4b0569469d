"""Notes in records: codes with arguments; the sentences of version 3 mean the same."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from record_support import INFO, row
from sentence_support import notes_of, reason_of

from samebits._text.masking import MASK, Masker
from samebits.comparison import compare_records
from samebits.errors import SamebitsError
from samebits.interventions import intervention_named
from samebits.records.creation import masked_info
from samebits.records.notes import STORED_ARGUMENTS, Note, NoteCode, RecordedPart, lost_state
from samebits.records.reader import RecordReader
from samebits.records.writer import RecordWriter
from samebits.report.notes import sentence

if TYPE_CHECKING:
    from pathlib import Path

# As samebits wrote them before notes had codes, one of each kind that it had.
SENTENCES_OF_VERSION_3 = {
    "3 tensor(s) could not be read and were left out": NoteCode.UNREADABLE_TENSORS,
    f"made {intervention_named('hash-seed').words} (pin hash-seed), "
    f"{intervention_named('clock').words} (pin clock)": NoteCode.INTERVENTIONS,
    "no more values could be kept, 256 MB are full: 7 further event(s) at the origins": NoteCode.NO_SPACE,
    "recording of a step failed and left something out (ZeroDivisionError: a (b) c)": NoteCode.NOT_RECORDED,
    "recording of a repetition of aten::mm.default failed and left something out (OSError)": (
        NoteCode.NOT_RECORDED
    ),
    "run 1's value could not be put in place at 2 of 3 events of aten::mm.default at /at b/t.py:3: run 1 "
    "had no such event, or did not keep it; they had another shape or dtype, or no contents of a kind "
    "that can be kept": NoteCode.NOT_PLACED,
    "the child process `python -m x` (started at a.py:3) was not recorded: if it trains, that is not "
    "compared": (NoteCode.CHILD_NOT_RECORDED),
    "the child process `sh` was not recorded: if it trains, that is not compared": (
        NoteCode.CHILD_NOT_RECORDED
    ),
    "torch.compile made 2 graph(s): compiled code is recorded by step, not by op": NoteCode.COMPILED,
    "torch.compile was switched off to execute ops again: this run is eager": NoteCode.COMPILE_OFF,
    "a remark of another time {} {0}": NoteCode.TEXT,
}


def trained(path: Path) -> Path:
    """A record of one step."""
    writer = RecordWriter(path, INFO)
    writer.add(row(writer, 0))
    writer.update(status="finished", exit_status=0, steps=1)
    writer.close()
    return path


def record_with(path: Path, notes: object, version: int) -> Path:
    """A record whose column of notes holds a JSON value; a new one where there is none."""
    if not path.exists():
        RecordWriter(path, INFO).close()
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version={version}")
        database.execute("UPDATE run SET notes = ?", (json.dumps(notes),))
    database.close()
    return path


def read(path: Path) -> tuple[Note, ...]:
    """The notes of a record."""
    with RecordReader(path) as reader:
        return reader.info.notes


def test_what_is_written_is_read(tmp_path: Path) -> None:
    notes = tuple(
        Note(code, tuple(map(str, range(2 if number is None else number))))
        for code, number in STORED_ARGUMENTS.items()
    )
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    writer.update(notes=notes)
    writer.close()
    assert read(tmp_path / "a.sbr") == notes


def test_secrets_in_notes_are_masked() -> None:
    """In the arguments of a note, as in a message of the script."""
    error = "OSError: no login with hunter2secret"
    notes = Note.of(NoteCode.NOT_RECORDED, "step", error, ""), Note.of(NoteCode.COMPILED, "1")
    masker = Masker(("train.py", "--password", "hunter2secret"))
    masked = masked_info(replace(INFO, notes=notes), masker).notes

    assert masked[0] == Note.of(NoteCode.NOT_RECORDED, "step", error.replace("hunter2secret", MASK), "")
    assert masked[1] == notes[1]


NEWER = (RecordedPart.TAP, RecordedPart.INVENTORY, RecordedPart.DATA_FILES)


def test_a_record_of_version_3_has_the_same_notes(tmp_path: Path) -> None:
    """Their codes are those of today, and their sentences are word for word what they were."""
    path = record_with(tmp_path / "a.sbr", list(SENTENCES_OF_VERSION_3), 3)
    with RecordReader(path) as reader:
        assert notes_of(reader.info) == tuple(SENTENCES_OF_VERSION_3)
        assert [note.code for note in reader.info.notes] == list(SENTENCES_OF_VERSION_3.values())


@pytest.mark.parametrize("part", [part for part in RecordedPart if part not in NEWER])
def test_lost_state_of_a_record_of_version_3_is_seen(tmp_path: Path, part: RecordedPart) -> None:
    """By the same parts as in a record of today."""
    today = Note.of(
        NoteCode.NOT_RECORDED, part.value, "OSError: no", "op" * (part == RecordedPart.REPETITION)
    )
    notes = read(record_with(tmp_path / "a.sbr", [sentence(today)], 3))
    assert notes == (today,)
    states = (RecordedPart.STEP, RecordedPart.BACKWARD, RecordedPart.LAST_STATE)
    assert lost_state(notes) == (today if part in states else None)


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (["tides", ["high", "low"]], "tides: high, low"),
        (["tides", []], "tides"),
        (["compiled", []], "compiled"),
        (["compiled", ["1", "2"]], "compiled: 1, 2"),
        (["interrupted", []], "interrupted"),
        (["environment", ["x"]], "environment: x"),
        (["compile-off", ["{0}"]], "torch.compile was switched off to {0}: this run is eager"),
        (["not-recorded", ["{0}", "{}", ""]], "recording of {0} failed and left something out ({})"),
    ],
)
def test_a_note_that_is_not_known_is_shown_as_it_is(tmp_path: Path, stored: object, shown: str) -> None:
    """A record may be forged, or of a samebits to come; codes of comparisons are no notes of a run."""
    assert [sentence(note) for note in read(record_with(tmp_path / "a.sbr", [stored], 4))] == [shown]


@pytest.mark.parametrize("stored", [5, {}, "text", None, [5], [["compiled"]], [[5, []]], [["compiled", [1]]]])
def test_what_is_no_note_is_damage(tmp_path: Path, stored: object) -> None:
    with pytest.raises(SamebitsError) as caught:
        read(record_with(tmp_path / "a.sbr", stored, 4))
    assert caught.value.slug == "record-damaged"


@pytest.mark.parametrize("version", [3, 4])
def test_runs_whose_state_was_lost_are_not_called_identical(tmp_path: Path, version: int) -> None:
    """Beside a record of today, whichever version says it."""
    lost = Note.of(NoteCode.NOT_RECORDED, "step", "OSError: no", "")
    old = sentence(lost) if version == 3 else [lost.code.value, list(lost.arguments)]
    first = trained(tmp_path / "a.sbr")
    second = record_with(trained(tmp_path / "b.sbr"), [old], version)
    other_part = sentence(replace(lost, arguments=("batch", "OSError: no", "")))
    harmless = record_with(trained(tmp_path / "c.sbr"), [other_part], 3)

    result = compare_records(first, second)
    assert result.verdict == "not_judged"
    assert reason_of(result) == f"the state could not be recorded in the second run: {sentence(lost)}"
    assert result.notes == (lost,)
    assert compare_records(first, harmless).verdict == "identical"
