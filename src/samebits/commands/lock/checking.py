"""Checks entries of a lock file, and writes them."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._runtime.package import __version__
from samebits.commands.lock.attribution import attribute
from samebits.commands.lock.case import Case
from samebits.commands.lock.entry import LockEntry, first_mismatch, here_as_locked
from samebits.commands.lock.outcome import EntryResult
from samebits.commands.lock.recipe import (
    Recipe,
    check_script,
    refuse_edited,
    run,
    run_failure,
    run_operations,
)
from samebits.environment import fact_at
from samebits.errors import SamebitsError
from samebits.verification.preconditions import check_writable

if TYPE_CHECKING:
    from samebits.commands.lock.case import Announce
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
    return replace(result, seconds=time.monotonic() - begun)


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


def make_entry(entry: LockEntry, lock: LockFile, options: CheckOptions) -> LockEntry:
    """Run a command twice, and return an entry that holds what it gave; write the record beside the lock.

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
    if first_mismatch(made.rows, again.rows) is not None:
        refuse_edited(made, again)
        raise _not_repeatable(entry, made, again)
    written = replace(
        entry,
        steps=made.info.steps,
        rows=made.rows,
        environment=here_as_locked(made.info).environment,
        commit=str(fact_at(made.info.environment, "source", "commit") or ""),
        samebits=__version__,
    )
    return replace(written, trace=_write_trace(written, lock, recipe, options))


def _not_repeatable(entry: LockEntry, made: LockRun, again: LockRun) -> SamebitsError:
    mismatch = first_mismatch(made.rows, again.rows)
    where = "" if mismatch is None or mismatch.last_step is None else f" from step {mismatch.last_step} on"
    seed = "" if entry.control is not None else " or give --seed 0"
    message = (
        f"two runs of {entry.command[0]} gave different bits{where}, so there is nothing to lock; "
        f"`samebits verify` says why: mend that first{seed}"
    )
    return SamebitsError(message, slug="lock-not-repeatable")


def _write_trace(entry: LockEntry, lock: LockFile, recipe: Recipe, options: CheckOptions) -> int:
    """Record the operations of the first steps beside the lock, and return how many steps that has."""
    path = lock.trace(entry.name)
    path.unlink(missing_ok=True)
    if not entry.trace:
        return 0
    options.announce(f"{entry.name}: the operations of its first steps")
    most = entry.trace if entry.max_steps is None else min(entry.trace, entry.max_steps)
    made = run_operations(replace(recipe, max_steps=most, output="nothing"), "trace")
    why = f"failed: {run_failure(made)}" if made.failed else ""
    if os.path.getsize(made.record) > _LARGEST_TRACE:
        why = "is too large to keep"
    if why:
        options.announce(f"{entry.name}: the record of its operations {why}; the lock goes without it")
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(made.record, path)
    return most


def _prepare(records: Path) -> None:
    shutil.rmtree(records, ignore_errors=True)
    check_writable(records / "x")
