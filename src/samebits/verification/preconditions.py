"""The conditions under which a script can be run and its runs can be judged."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import tempfile
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._text import files
from samebits.errors import SamebitsError
from samebits.recording.children import children_folder
from samebits.recording.farewell import why_incomplete
from samebits.recording.naming import DEFAULT_FOLDER, target_name
from samebits.recording.target import check_target as check_script
from samebits.records.events import RunInfo
from samebits.records.kinds import EventKind, Level
from samebits.records.notes import Note, NoteCode

if TYPE_CHECKING:
    from collections.abc import Collection

    from samebits.recording.runner import Target
    from samebits.verification.results import ScriptRun

# torch refuses some things while a dispatch mode is on, such as tracing a module.
_OP_HINT = (
    "; some code does not run while every operation is recorded: leave out `--level op` to compare its steps"
)
_NOT_LOADED = (126, 127)  # of the dynamic loader, and of a shell that stands for the interpreter
_COMPARED_KINDS = {EventKind.STEP, EventKind.LOSS, EventKind.GRAD, EventKind.READ, EventKind.SAVE}


def nothing_to_compare(run: ScriptRun, target: Target) -> str:
    """Say why a second run would be of no use; empty if it would."""
    name = script_name(target)
    if run.info is None:
        return before_record(name, run.status)
    if run.info.status == "running":
        return f"run 1 of {name} did not end: {_ending(run)}{_hint(run)}"
    if run.info.torch or children_folder(run.record).is_dir():
        return ""
    if run.info.status == "failed":
        return f"{name} failed before it imported torch: {run.info.failure} (exit status {run.status})"
    return f"{name} never imported torch: nothing to compare"


def has_failed(run: ScriptRun) -> bool:
    """Tell whether a run did not end as it should."""
    return bool(_ending(run))


def failure(runs: tuple[ScriptRun, ScriptRun], target: Target) -> str:
    """Say why two runs cannot be judged: one or both did not end as they should; empty if they did."""
    name = script_name(target)
    said = [_ending(run) for run in runs]
    if not any(said):
        return ""
    if all(said):
        how = said[0] if said[0] == said[1] else f"{said[0]} in run 1, {said[1]} in run 2"
        return f"{name} failed in both runs: {how}{_hint(*runs)}"
    number = 1 if said[0] else 2
    other = runs[2 - number].info or RunInfo((), Level.STEP, "finished")
    ended = "was stopped at a difference" if other.status == "stopped" else "did not fail"
    return f"{name} failed in run {number} only: {said[number - 1]}; run {3 - number} {ended}{_hint(*runs)}"


def doubt(runs: tuple[ScriptRun, ScriptRun], kinds: Collection[EventKind], target: Target) -> str:
    """Say why equal bits are not enough to call two runs identical; empty if they are.

    Args:
        runs: the runs.
        kinds: kinds of the events that were compared.
        target: the script.
    """
    if not _COMPARED_KINDS & set(kinds):
        return f"{script_name(target)} took no step and read no value out of torch: nothing to compare"
    if runs[0].status != runs[1].status:
        statuses = f"{runs[0].status} in run 1 and {runs[1].status} in run 2"
        return f"the bits are equal, but the exit status is {statuses}"
    return ""


def exit_note(runs: tuple[ScriptRun, ScriptRun], target: Target) -> Note | None:
    """Note that a script ended by itself with a status other than 0 in both runs."""
    if runs[0].status == runs[1].status != 0:
        return Note.of(NoteCode.EXIT_STATUS, script_name(target), runs[0].status)
    return None


def before_record(name: str, status: int) -> str:
    """Say why a run left no record, as far as its end tells.

    Args:
        name: of the script.
        status: as the shell would show it.
    """
    end = f"{name} ended {ended_words(status)} before its record was begun"
    if status == 128 + signal.SIGKILL:
        return f"{end}; a process that is killed without a word is mostly out of memory, see `ulimit -a` too"
    if status in _NOT_LOADED:
        return f"{end}: the interpreter could not be loaded; see what `{sys.executable} -c pass` prints"
    return f"{end}; what it printed on stderr says why (it was run by {sys.executable})"


def ended_words(status: int) -> str:
    """Say how a process ended.

    Args:
        status: as the shell would show it: 128 + N after signal N.
    """
    try:
        return f"by {signal.Signals(status - 128).name}"
    except ValueError:
        return f"with exit status {status}"


def script_name(target: Target) -> str:
    """Return the name of the script for a message."""
    return target.script if target.script is not None else f"module {target.module or target_name(target)}"


def _hint(*runs: ScriptRun) -> str:
    """Say what to try when a script that failed had its operations recorded."""
    return _OP_HINT if any(run.info and run.info.level == Level.OP for run in runs) else ""


def _ending(run: ScriptRun) -> str:
    """Say what went wrong in a run; empty if nothing."""
    info = run.info
    if info is None:
        return f"it ended {ended_words(run.status)} and left no record"
    if run.timed_out:
        return f"it did not end in {run.seconds:.0f} s"
    where = f"at step {info.steps}" if info.steps else "before its first step"
    if info.status == "running":
        if info.failure:  # as the parent saw it
            return info.failure
        return f"its record is incomplete: {why_incomplete(Path(run.record))}"
    if info.status == "failed":
        return f"{info.failure or 'an exception'} {where} (exit status {run.status})"
    return ""


def check_target(target: Target) -> None:
    """Refuse a script or a module that is not there.

    Raises:
        SamebitsError: `script-missing`, `script-unreadable`, `script-no-main` or `module-missing`.
    """
    check_script(target.script)
    if target.module is None:
        return
    top = target.module.partition(".")[0]  # finding what is inside a package would import the package here
    if not top or not (PathFinder.find_spec(top, [os.getcwd()]) or importlib.util.find_spec(top)):
        message = f"no module named {target.module}; expected a module for -m (looked in {os.getcwd()} first)"
        raise SamebitsError(message, slug="module-missing")


def check_writable(record: Path) -> None:
    """Refuse a place where no record can be written; missing folders are made.

    For what a user named see `refuse_missing` too.

    Raises:
        SamebitsError: `record-unwritable`.
    """
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=record.parent):
            pass
        for folder in record.parents:
            if folder.name == DEFAULT_FOLDER.name and not folder.is_symlink():
                _keep_out_of_git(folder)
    except OSError as error:
        message = f"cannot write {record}: {error.strerror}; give another place for records"
        raise SamebitsError(message, slug="record-unwritable") from None


def refuse_missing(folder: Path, wanted: Path | None = None) -> None:
    """Refuse a place whose folder is not there: only the last part of what a user named is made.

    Args:
        folder: the one that is to hold what was named.
        wanted: what was named, for the message.

    Raises:
        SamebitsError: `record-unwritable`.
    """
    if not folder.is_dir():
        problem = "is no folder" if os.path.lexists(folder) else "does not exist"
        what = f"cannot write {wanted}: " if wanted is not None else ""
        message = f"{what}the folder {folder} {problem}; make it first, or give another place"
        raise SamebitsError(message, slug="record-unwritable")


def check_named(record: Path) -> None:
    """Refuse the path of a record that a user named, where no regular file can be written.

    Raises:
        SamebitsError: its folder is not there, or it is a device, a link, a FIFO, …; `record-unwritable`.
    """
    refuse_missing(record.parent, record)
    try:
        files.refuse_irregular(record)
    except OSError as error:
        message = f"cannot write {record}: {error.strerror}; give another --record"
        raise SamebitsError(message, slug="record-unwritable") from None


def _keep_out_of_git(folder: Path) -> None:
    """Keep the records out of a repository; an existing file of that name stays as it is."""
    try:
        descriptor = files.create(folder / ".gitignore", mode=files.SHARED)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "wb") as file:
        file.write(b"*\n")
