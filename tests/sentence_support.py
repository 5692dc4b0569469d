"""Notes as a user reads them, for the tests that look at what is said."""

from __future__ import annotations

from typing import Protocol

from samebits.recording.notes import Note, NoteCode
from samebits.report.notes import sentence


class Noted(Protocol):
    """What has notes."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes."""
        ...


def notes_of(result: Noted) -> tuple[str, ...]:
    """The sentences of the notes of a comparison, of origins or of a record's facts."""
    return tuple(sentence(note) for note in result.notes)


def text_note(text: str) -> Note:
    """A note whose sentence is this text."""
    return Note.of(NoteCode.TEXT, text)
