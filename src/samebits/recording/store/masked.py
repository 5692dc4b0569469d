"""What is known of a run, as it may be written: without secrets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.recording.notes import Note

if TYPE_CHECKING:
    from samebits.masking import Masker
    from samebits.recording.events import RunInfo


def masked_info(info: RunInfo, masker: Masker) -> RunInfo:
    """The facts of a run with their secrets masked.

    Args:
        info: its command may be masked already.
        masker: of that command.
    """
    return replace(
        info,
        command=masker.command or info.command,
        failure=masker.message(info.failure),
        environment=masker.value(info.environment),
        control=masker.value(info.control),
        notes=tuple([_masked_note(note, masker) for note in info.notes]),
        replay=masker.value(info.replay),
    )


def _masked_note(note: Note, masker: Masker) -> Note:
    return Note.of(note.code, *(masker.message(text) for text in note.arguments))
