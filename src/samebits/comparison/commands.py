"""Whether two records are of the same command, and what of it they do not say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from samebits.masking import MASK, NOT_RECORDED
from samebits.recording.notes import Note, NoteCode

if TYPE_CHECKING:
    from samebits.recording.events import RunInfo


def another_command(a: RunInfo, b: RunInfo) -> str | None:
    """Why two records are not of the same command; None when they are, as far as they tell."""
    (script_a, rest_a), (script_b, rest_b) = _split(a.command), _split(b.command)
    if script_a != script_b:
        names = " and ".join(script or "none" for script in (script_a, script_b))
        return f"the records are of two scripts, {names}: compare runs of one script"
    if rest_a != rest_b and NOT_RECORDED not in (*rest_a, *rest_b):
        return (
            f"the two runs had different arguments, `{' '.join(rest_a) or 'none'}` and"
            f" `{' '.join(rest_b) or 'none'}`: compare runs of the same command"
        )
    return None


def unseen_arguments(a: RunInfo, b: RunInfo) -> list[Note]:
    """A note on arguments that may differ although the commands are equal; empty when all are seen."""
    words = (*a.command, *b.command)
    if NOT_RECORDED in words:
        return [Note.of(NoteCode.ARGUMENTS_NOT_RECORDED)]
    if any(MASK in word for word in words):
        return [Note.of(NoteCode.ARGUMENTS_MASKED)]
    return []


def _split(command: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The script without its folder, or `-m module`, and the arguments."""
    if command[:1] == ("-m",):
        return " ".join(command[:2]), command[2:]
    return os.path.basename(command[0]) if command else "", command[1:]
