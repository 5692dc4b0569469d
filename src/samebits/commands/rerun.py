"""A recorded run made again: its command, with the control and the interventions that it had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits._text.masking import NOT_RECORDED
from samebits._text.secret_names import MASK
from samebits.environment.distributed import KEY as RANKS
from samebits.errors import SamebitsError
from samebits.recording.runner import Target
from samebits.recording.settings import Inventory, RecordingSettings
from samebits.records.notes import NoteCode
from samebits.switches.switch import Control

if TYPE_CHECKING:
    from samebits.records.events import RunInfo


def repeated_target(recorded: RunInfo, given: tuple[str, ...] | None = None) -> Target:
    """Return the script or module of a recorded run, and its arguments.

    Args:
        recorded: the run.
        given: arguments instead of the recorded ones.

    Raises:
        SamebitsError: the record does not hold the command, or not all of its arguments (`rerun-arguments`);
            it is one rank of a distributed run (`rerun-rank`).
    """
    if recorded.environment.get(RANKS) is not None:
        message = (
            "the record is that of one rank of a distributed run, which cannot be run again alone; expected "
            "that of a run of one process. Start the launch again with torchrun, and use `samebits compare`"
        )
        raise SamebitsError(message, slug="rerun-rank")
    is_module = recorded.command[:1] == ("-m",)
    start = 2 if is_module else 1
    if len(recorded.command) < start:
        raise SamebitsError(
            "the record holds no command; expected a script or a module", slug="rerun-arguments"
        )
    arguments = recorded.command[start:] if given is None else given
    if given is None and not has_all_arguments(recorded):
        message = (
            "the record does not hold all arguments of the script, because secrets are masked or "
            "--no-arguments was given; expected all of them after `--`"
        )
        raise SamebitsError(message, slug="rerun-arguments")
    name = recorded.command[start - 1]
    return Target(None if is_module else name, name if is_module else None, tuple(arguments))


def has_all_arguments(recorded: RunInfo) -> bool:
    """Tell whether a record holds the arguments of its run as they were, and no secret is masked in them."""
    return not any(MASK in word or word == NOT_RECORDED for word in recorded.command)


def repeated_settings(recorded: RunInfo, record: str, *, progress: bool) -> RecordingSettings:
    """Return the settings of a run that is to give what a recorded one gave.

    Args:
        recorded: the run. One that samebits stopped at a step limit is stopped there again.
        record: path of the new record.
        progress: show progress in the last row of the terminal.
    """
    notes = (note for note in recorded.notes if note.code is NoteCode.INTERVENTIONS)
    return RecordingSettings(
        record=record,
        level=recorded.level,
        max_steps=recorded.steps if recorded.status == "stopped" else None,
        progress=progress,
        control=_control(recorded),
        interventions=tuple(str(name) for note in notes for name in note.arguments),
        inventory=Inventory(),
    )


def _control(recorded: RunInfo) -> Control | None:
    """Return the control that a run asked for.

    Raises:
        SamebitsError: the record holds something else in its place; `record-damaged`.
    """
    fields = {name: value for name, value in recorded.control.items() if name in Control._fields}
    if not fields:
        return None
    try:
        return Control.from_dict(fields)
    except (KeyError, TypeError, ValueError) as error:
        message = f"the record holds no control that can be read ({error}); expected what samebits wrote"
        raise SamebitsError(message, slug="record-damaged") from None
