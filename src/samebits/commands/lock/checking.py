"""Checks entries of a lock file, and writes them."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._runtime.package import __version__
from samebits._text.files import SHARED, write_whole
from samebits._text.printable import printable
from samebits.commands.lock.attribution import attribute
from samebits.commands.lock.case import Case
from samebits.commands.lock.entry import LockEntry, agree, first_mismatch, here_as_locked, rows_of
from samebits.commands.lock.file import read_lock, write_lock
from samebits.commands.lock.outcome import EntryResult
from samebits.commands.lock.recipe import Recipe, check_script, run, run_failure, run_operations
from samebits.environment.snapshot import fact_at
from samebits.errors import SamebitsError
from samebits.records.notes import NoteCode
from samebits.verification.preconditions import check_writable
from samebits.verification.user_files import refuse_other_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.commands.lock.case import Announce
    from samebits.commands.lock.entry import Mismatch
    from samebits.commands.lock.file import LockFile
    from samebits.commands.lock.recipe import LockRun
    from samebits.executors.surroundings import Surroundings

_LARGEST_TRACE = 1 << 24  # bytes


@dataclass(frozen=True)
class CheckOptions:
    """How entries are checked.

    Args:
        records: folder for the records of the runs.
        output: where the output of the scripts goes: `inherit`, `stderr` or `nothing`.
        progress: show progress in the last row of the terminal.
        explain: find out whose a mismatch is, which takes more runs.
        announce: told what is about to run.
    """

    records: Path
    output: str
    progress: bool
    explain: bool
    announce: Announce


def recipe_of(entry: LockEntry, lock: LockFile, options: CheckOptions) -> Recipe:
    """Return the recipe of an entry."""
    return Recipe(
        entry.command,
        entry.control,
        entry.interventions,
        lock.folder,
        Path(os.path.abspath(options.records)) / entry.name,
        max_steps=entry.max_steps,
        output=options.output,
        progress=options.progress,
    )


def check_entry(lock: LockFile, entry: LockEntry, options: CheckOptions) -> EntryResult:
    """Run the command of an entry here, and compare; find out whose a mismatch is.

    Raises:
        KeyboardInterrupt: by Ctrl-C.
    """
    begun = time.monotonic()
    try:
        result = _checked(lock, entry, options)
    except SamebitsError as error:
        result = EntryResult(entry, "not_judged", error=(str(error), error.slug))
    return replace(result, seconds=time.monotonic() - begun, lock=os.path.abspath(lock.path))


def check_in_job(
    surroundings: Surroundings, lock: LockFile, entry: LockEntry, options: CheckOptions
) -> EntryResult:
    """Check an entry in a job; see `check_entry`.

    Args:
        surroundings: of the command that submitted it.
        lock: the file.
        entry: one of it.
        options: how it is checked.
    """
    with surroundings.entered():
        return check_entry(lock, entry, options)


def tell_nobody(_text: str) -> None:
    """Announce nothing: nobody watches a job."""


def _checked(lock: LockFile, entry: LockEntry, options: CheckOptions) -> EntryResult:
    recipe = recipe_of(entry, lock, options)
    check_script(recipe, entry.name, str(lock.path))
    _prepare(recipe.records)
    options.announce(f"{entry.name}: a run")
    made = run(recipe, "run", inventory=True)
    if made.failed:
        error = run_failure(made)
        return EntryResult(entry, "not_judged", made, error=(str(error), error.slug))
    mismatch = first_mismatch(entry.rows, made.rows)
    if mismatch is None:
        return EntryResult(entry, "identical", made)
    result = EntryResult(entry, "different", made, mismatch=mismatch)
    if not options.explain:
        return result
    try:
        return attribute(Case(lock, recipe, result, lambda what: options.announce(f"{entry.name}: {what}")))
    except SamebitsError as error:  # the verdict stands
        return replace(result, error=(str(error), error.slug))


@dataclass(frozen=True)
class MadeEntry:
    """An entry that is to be written.

    Args:
        entry: of the lock file.
        trace: the record that goes beside the file; None if none does.
    """

    entry: LockEntry
    trace: Path | None


def write_entries(lock: LockFile, made: Sequence[MadeEntry]) -> LockFile:
    """Write entries into a lock file as it is now, then the records beside it, and return the file.

    Raises:
        SamebitsError: it cannot be written; `lock-unwritable`. Then no record was touched.
    """
    if lock.path.is_file():  # another `samebits lock` may have ended meanwhile
        lock = read_lock(lock.path)
    for each in made:
        lock = lock.with_entry(each.entry)
    write_lock(lock)
    for each in made:
        _put_trace(each.trace, lock.trace(each.entry.name))
    return lock


def _put_trace(trace: Path | None, path: Path) -> None:
    try:
        if trace is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, trace.read_bytes(), mode=SHARED)
    except OSError as error:
        message = (
            f"cannot write {printable(str(path))}, which goes beside the lock: {error.strerror or error}"
        )
        raise SamebitsError(message, slug="lock-unwritable") from None


def make_entry(entry: LockEntry, lock: LockFile, options: CheckOptions) -> MadeEntry:
    """Run a command twice, and return an entry that holds what it gave; nothing is written.

    Its first steps run a third time, with their operations recorded.

    Args:
        entry: its name, command and control; with as many steps in its trace as are wanted.
        lock: the file that it is for.
        options: how it is run.

    Raises:
        SamebitsError: the script is not there (`lock-script`), the run fails (`lock-run-failed`) or gives
            nothing to compare (`lock-empty`), or two runs differ (`lock-not-repeatable`).
        KeyboardInterrupt: by Ctrl-C.
    """
    recipe = recipe_of(entry, lock, options)
    check_script(recipe, entry.name, str(lock.path))
    _prepare(recipe.records)
    options.announce(f"{entry.name}: a run")
    made = run(recipe, "run", inventory=True)
    if made.failed or made.info is None:
        raise run_failure(made)
    if not any(row.state or row.values for row in made.rows):
        message = f"{entry.name} took no step and read no value out of torch, so there is nothing to lock"
        raise SamebitsError(message, slug="lock-empty")
    options.announce(f"{entry.name}: a second run, to see whether it gives the same bits")
    again = run(replace(recipe, output="nothing"), "again")
    if again.failed:
        raise run_failure(again)
    mismatch = first_mismatch(made.rows, again.rows)
    if mismatch is not None:
        refuse_other_code(made.info, again.info)
        raise _not_repeatable(entry, mismatch)
    written = replace(
        entry,
        steps=made.info.steps,
        rows=made.rows,
        environment=here_as_locked(made.info).environment,
        commit=str(fact_at(made.info.environment, "source", "commit") or ""),
        samebits=__version__,
    )
    trace, steps = _traced(written, made, recipe, options)
    return MadeEntry(replace(written, trace=steps), trace)


def _not_repeatable(entry: LockEntry, mismatch: Mismatch | None) -> SamebitsError:
    where = "" if mismatch is None or mismatch.last_step is None else f" from step {mismatch.last_step} on"
    seed = "" if entry.control is not None else " or give --seed 0"
    message = (
        f"two runs of {entry.command[0]} gave different bits{where}, so there is nothing to lock; "
        f"`samebits verify` says why: fix that first{seed}"
    )
    return SamebitsError(message, slug="lock-not-repeatable")


def _traced(
    entry: LockEntry, run_of_entry: LockRun, recipe: Recipe, options: CheckOptions
) -> tuple[Path | None, int]:
    """Record the operations of the first steps, and return the record and how many steps that has.

    Raises:
        SamebitsError: their bits are others than those of the run of the entry; `lock-not-repeatable`.
    """
    if not entry.trace:
        return None, 0
    options.announce(f"{entry.name}: the operations of its first steps")
    most = entry.trace if entry.max_steps is None else min(entry.trace, entry.max_steps)
    made = run_operations(replace(recipe, max_steps=most, output="nothing"), "trace")
    why = f"failed: {run_failure(made)}" if made.failed else ""
    if not why and not agree(entry.rows, rows_of(made.record)):
        refuse_other_code(run_of_entry.info, made.info)
        if made.info is None or not any(note.code is NoteCode.COMPILE_OFF for note in made.info.notes):
            raise _not_repeatable(entry, None)
        why = "has other bits than the run, because it is made without torch.compile"
    if os.path.getsize(made.record) > _LARGEST_TRACE:
        why = "is too large to keep"
    if why:
        options.announce(f"{entry.name}: the record of its operations {why}; the lock goes without it")
        return None, 0
    return Path(made.record), most


def _prepare(records: Path) -> None:
    shutil.rmtree(records, ignore_errors=True)
    check_writable(records / "x")
