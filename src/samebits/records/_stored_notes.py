"""The notes of a run as a record stores them: codes with arguments, and in version 3 English sentences.

Only this module reads the sentences of version 3; everywhere else a note is known by its code.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from samebits.records.notes import STORED_ARGUMENTS, Note, NoteCode, RecordedPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_OLD_PARTS = {
    "a backward pass": RecordedPart.BACKWARD,
    "a batch": RecordedPart.BATCH,
    "a kept value": RecordedPart.CAPTURED_VALUE,
    "a read": RecordedPart.READ,
    "a save": RecordedPart.SAVE,
    "a seed": RecordedPart.SEED,
    "a step": RecordedPart.STEP,
    "an epoch of a DataLoader": RecordedPart.EPOCH,
    "an operation": RecordedPart.OPERATION,
    "an optimizer": RecordedPart.OPTIMIZER,
    "draws": RecordedPart.DRAWS,
    "generator states": RecordedPart.GENERATOR_STATES,
    "gradients": RecordedPart.GRADIENTS,
    "indices of a batch": RecordedPart.INDICES,
    "the last state": RecordedPart.LAST_STATE,
    "the replicas": RecordedPart.REPLICAS,
    "the state log": RecordedPart.STATE_LOG,
    "values": RecordedPart.VALUES,
}
_OLD_REPETITION = "a repetition of "
_OLD_PURPOSES = {"record ops": "record", "execute ops again": "replay"}
_OLD_MISSING = "run 1 had no such event, or did not keep it"
_OLD_MISFIT = "they had another shape or dtype, or no contents of a kind that can be kept"
_OLD_REASONS = {
    _OLD_MISSING: "missing",
    _OLD_MISFIT: "misfit",
    f"{_OLD_MISSING}; {_OLD_MISFIT}": "both",
}


class ForeignNotes(Exception):  # noqa: N818  # the reader makes an error of it
    """A column of notes that is not JSON of either form."""


def stored(notes: Iterable[Note]) -> list[list[object]]:
    """Return notes as JSON values."""
    return [[note.code.value, list(note.arguments)] for note in notes]


def notes_of(values: object, cut: Callable[[str], str]) -> tuple[Note, ...]:
    """Return the notes of a record, of this version or of version 3.

    An unknown code, or a code with a wrong number of arguments, becomes a note of plain text.

    Args:
        values: the JSON of the column.
        cut: shortens texts that are too long.

    Raises:
        ForeignNotes: `values` is not a list of notes.
    """
    if type(values) is not list:
        raise ForeignNotes
    return tuple([_of_sentence(cut(each)) if type(each) is str else _of_pair(each, cut) for each in values])


def _of_pair(value: object, cut: Callable[[str], str]) -> Note:
    if type(value) is not list or len(value) != 2 or type(value[0]) is not str or type(value[1]) is not list:
        raise ForeignNotes
    if not all(type(each) is str for each in value[1]):
        raise ForeignNotes
    name, arguments = value[0], tuple([cut(each) for each in value[1]])
    for code, number in STORED_ARGUMENTS.items():
        if code.value == name and number in (None, len(arguments)):
            return Note(code, arguments)
    return Note.of(NoteCode.TEXT, cut(f"{name}: {', '.join(arguments)}" if arguments else name))


def _of_sentence(text: str) -> Note:
    """Return the note that a sentence of version 3 stands for."""
    for pattern, make in _SENTENCES:
        match = pattern.fullmatch(text)
        note = None if match is None else make(match)
        if note is not None:
            return note
    return Note.of(NoteCode.TEXT, text)


def _not_recorded(match: re.Match[str]) -> Note | None:
    what, error = match.groups()
    if what.startswith(_OLD_REPETITION):
        op = what.removeprefix(_OLD_REPETITION)
        return Note.of(NoteCode.NOT_RECORDED, RecordedPart.REPETITION.value, error, op)
    part = _OLD_PARTS.get(what)
    return None if part is None else Note.of(NoteCode.NOT_RECORDED, part.value, error, "")


def _interventions(match: re.Match[str]) -> Note:
    return Note.of(NoteCode.INTERVENTIONS, *re.findall(r" \(pin ([\w-]+)\)(?:, |$)", match[1]))


def _not_placed(match: re.Match[str]) -> Note | None:
    *arguments, why = match.groups()
    reason = _OLD_REASONS.get(why)
    return None if reason is None else Note.of(NoteCode.NOT_PLACED, *arguments, reason)


def _compile_off(match: re.Match[str]) -> Note:
    return Note.of(NoteCode.COMPILE_OFF, _OLD_PURPOSES[match[1]])


def _plainly(code: NoteCode) -> Callable[[re.Match[str]], Note]:
    """Return a function that makes a note with the groups of a match as its arguments."""
    return lambda match: Note.of(code, *match.groups(default=""))


_SENTENCES = tuple(
    (re.compile(pattern, re.DOTALL), make)
    for pattern, make in (
        (
            r"(\d+) tensor\(s\) could not be read and were left out",
            _plainly(NoteCode.UNREADABLE_TENSORS),
        ),
        (r"made (.+ \(pin [\w-]+\))", _interventions),
        (
            r"no more values could be kept, (-?\d+) MB are full: (\d+) further event\(s\) at the origins",
            _plainly(NoteCode.NO_SPACE),
        ),
        # A text that was cut has lost its end.
        (r"recording of (.+?) failed and left something out \((.*?)\)?", _not_recorded),
        (
            r"run 1's value could not be put in place at (\d+) of (\d+) events of (.+?) at (.+?): (\D.*)",
            _not_placed,
        ),
        (
            r"the child process `(.*)`(?: \(started at (.+)\))? was not recorded: if it trains.*",
            _plainly(NoteCode.CHILD_NOT_RECORDED),
        ),
        (
            r"torch\.compile made (\d+) graph\(s\): compiled code is recorded by step, not by op",
            _plainly(NoteCode.COMPILED),
        ),
        (
            r"torch\.compile was switched off to (record ops|execute ops again): this run is eager",
            _compile_off,
        ),
    )
)
