"""The conditions under which a script can be run and its runs can be judged."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._text import files
from samebits.comparison.reasons import Reason, ReasonCode
from samebits.errors import SamebitsError
from samebits.recording.closing import why_incomplete
from samebits.recording.naming import DEFAULT_FOLDER, children_folder
from samebits.recording.target import check_target as check_script
from samebits.records.kinds import EventKind, Level
from samebits.records.notes import Note, NoteCode

if TYPE_CHECKING:
    from collections.abc import Collection

    from samebits.recording.runner import Target
    from samebits.records.events import RunInfo
    from samebits.verification.results import ScriptRun

COMPARED_KINDS = {EventKind.STEP, EventKind.LOSS, EventKind.GRAD, EventKind.READ, EventKind.SAVE}
"""Without any of these, equal records show nothing."""

NOTHING_TO_COMPARE = {ReasonCode.NOTHING_COMPARED, ReasonCode.NO_TORCH}
"""Reasons that say so."""


def nothing_to_compare(run: ScriptRun, target: Target) -> Reason | None:
    """Return the reason why a second run would be of no use; None if it would be of use."""
    name = script_name(target)
    if run.info is None:
        return Reason.of(ReasonCode.BEFORE_RECORD, name, run.status)
    if run.info.status == "running":
        return Reason.of(ReasonCode.DID_NOT_END, name, _ending(run), _has_ops(run))
    if _may_have_torch(run.record, run.info):
        return None
    if run.info.status == "failed":
        return Reason.of(ReasonCode.FAILED_BEFORE_TORCH, name, run.info.failure, run.status)
    return Reason.of(ReasonCode.NO_TORCH, name)


def _may_have_torch(record: str, info: RunInfo) -> bool:
    """Tell whether a run, or a process that it started, imported torch."""
    return bool(info.torch) or children_folder(record).is_dir()


def has_failed(run: ScriptRun) -> bool:
    """Tell whether a run did not end as it should."""
    return _ending(run) is not None


def failure(runs: tuple[ScriptRun, ScriptRun], target: Target) -> Reason | None:
    """Say why two runs cannot be judged: one or both did not end as they should; None if they did."""
    name = script_name(target)
    first, second = (_ending(run) for run in runs)
    if first is None and second is None:
        return None
    if first is not None and second is not None:
        endings = (first,) if first == second else (first, second)
        return Reason.of(ReasonCode.FAILED_IN_BOTH, name, endings, _has_ops(*runs))
    number = 2 if first is None else 1
    other = runs[2 - number].info
    stopped = other is not None and other.status == "stopped"
    return Reason.of(ReasonCode.FAILED_IN_ONE, name, number, first or second, stopped, _has_ops(*runs))


def doubt(runs: tuple[ScriptRun, ScriptRun], kinds: Collection[EventKind], name: str) -> Reason | None:
    """Say why equal bits are not enough to call two runs identical; None if they are.

    Args:
        runs: the runs.
        kinds: kinds of the events that were compared.
        name: of the script, for a message.
    """
    if not COMPARED_KINDS & set(kinds):
        torch = any(run.info is None or _may_have_torch(run.record, run.info) for run in runs)
        return Reason.of(ReasonCode.NOTHING_COMPARED if torch else ReasonCode.NO_TORCH, name)
    if runs[0].status != runs[1].status:
        return Reason.of(ReasonCode.OTHER_STATUS, runs[0].status, runs[1].status)
    return None


def exit_note(runs: tuple[ScriptRun, ScriptRun], target: Target) -> Note | None:
    """Note that a script ended by itself with a status other than 0 in both runs."""
    if runs[0].status == runs[1].status != 0:
        return Note.of(NoteCode.EXIT_STATUS, script_name(target), runs[0].status)
    return None


def script_name(target: Target) -> str:
    """Return the name of the script for a message; a module of samebits runs a function of the user."""
    if target.script is not None:
        return target.script
    own = (target.module or "").startswith("samebits.")
    return "the function" if own else f"module {target.module}"


def _has_ops(*runs: ScriptRun) -> bool:
    """Tell whether the operations of one of some runs were recorded."""
    return any(run.info is not None and run.info.level == Level.OP for run in runs)


def _ending(run: ScriptRun) -> Reason | None:
    """Say what went wrong in a run; None if nothing."""
    info = run.info
    if info is None:
        return Reason.of(ReasonCode.LEFT_NO_RECORD, run.status)
    if run.timed_out:
        return Reason.of(ReasonCode.TIMED_OUT, run.seconds)
    if info.status == "running":
        if info.failure:  # as the parent saw it
            return Reason.of(ReasonCode.SEEN_FAILURE, info.failure)
        return Reason.of(ReasonCode.RECORD_INCOMPLETE, why_incomplete(Path(run.record)))
    if info.status == "failed":
        return Reason.of(ReasonCode.FAILED_AT, info.failure, info.steps, run.status)
    return None


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
    """Refuse a path where no record can be written; missing folders are made.

    For a path that a user named, see `refuse_missing` too.

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
        message = f"cannot write {record}: {error.strerror}; give another path for records"
        raise SamebitsError(message, slug="record-unwritable") from None


def refuse_missing(folder: Path, wanted: Path | None = None) -> None:
    """Refuse a path whose folder is not there: only the last part of a path that a user named is made.

    Args:
        folder: the folder of the path.
        wanted: the path, for the message.

    Raises:
        SamebitsError: `record-unwritable`.
    """
    if not folder.is_dir():
        problem = "is no folder" if os.path.lexists(folder) else "does not exist"
        what = f"cannot write {wanted}: " if wanted is not None else ""
        message = f"{what}the folder {folder} {problem}; make it first, or give another path"
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
