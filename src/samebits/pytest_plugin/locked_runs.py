"""A call in a fresh process, compared with an entry of a lock file, or written into it."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._runtime.package import __version__
from samebits._text.option_names import Interface
from samebits._text.printable import printable
from samebits.commands.lock.attribution import (
    REPEATS,
    REPEATS_WITHOUT_REASON,
    has_no_reason,
    with_environments,
    without_old_code,
)
from samebits.commands.lock.entry import LockEntry, first_mismatch, here_as_locked, rows_of
from samebits.commands.lock.file import DEFAULT, LockFile, check_name, read_lock, write_lock
from samebits.commands.lock.outcome import Blame, EntryResult, Proof
from samebits.commands.lock.recipe import LockRun, run_failure, unset
from samebits.commands.lock.rest import with_rest
from samebits.commands.lock.settings import settings_of_lock, those_needed
from samebits.comparison.reasons import Reason, ReasonCode
from samebits.environment.snapshot import table_at
from samebits.errors import SamebitsError
from samebits.pytest_plugin.fresh_runs import control_variables, report_of
from samebits.recording.naming import DEFAULT_FOLDER
from samebits.recording.settings import Inventory, RecordingSettings
from samebits.report import lock_text
from samebits.report.reasons import sentence_or_none
from samebits.report.style import Style
from samebits.switches.switch import ONLY_PORTABLE, Control
from samebits.verification import verify_records
from samebits.verification.preconditions import has_failed
from samebits.verification.runs import Job, Script, run_jobs

if TYPE_CHECKING:
    from samebits.commands.lock.outcome import RestoredSetting
    from samebits.pytest_plugin.fresh_runs import CallSite
    from samebits.records.events import RunInfo
    from samebits.verification import Verification

_OWN_FOLDERS = {DEFAULT_FOLDER.name, ".pytest_cache"}
_MAIN = "run_test.py"  # the main program of the fresh process


@dataclass(frozen=True)
class Locked:
    """A call and the entry of a lock file that holds what it gave.

    Args:
        site: the call.
        path: of the lock file.
        name: of the entry.
        control: of the runs.
    """

    site: CallSite
    path: Path
    name: str
    control: Control | None

    @property
    def folder(self) -> Path:
        """The folder of the lock file; what an entry names is relative to it."""
        return self.path.parent

    @property
    def test(self) -> str:
        """The node id of the test, as it is in the entry."""
        file, _, rest = self.site.test.partition("::")
        return f"{os.path.relpath(file, self.folder).replace(os.sep, '/')}::{rest}"

    @property
    def advice(self) -> str:
        """How to write the entry."""
        return f"`pytest --samebits-update {printable(self.site.nodeid)}`"


def locked_call(
    site: CallSite, name: str, lock: str | Path | None, seed: int | None, *, portable: bool
) -> Locked:
    """Return a call with the place of its entry.

    Args:
        site: the call.
        name: of the entry.
        lock: path of the file, relative to the folder of the test; None for `samebits.lock` there.
        seed: from which control seeds all generators of each run; None leaves the function as it is.
        portable: the runs are in portable mode.

    Raises:
        SamebitsError: the name has other characters than letters, digits, `.`, `_` and `-`; `usage`.
    """
    path = Path(site.test.partition("::")[0]).parent / (DEFAULT if lock is None else lock)
    control = None if seed is None else Control(seed=seed, portable=portable)
    if control is None and portable:
        control = ONLY_PORTABLE
    return Locked(site, Path(os.path.abspath(path)), check_name(name), control)


def check_locked(call: Locked) -> str:
    """Make a call again, and return the report of a difference to its entry; empty where there is none."""

    def judge(folder: Path) -> str:
        entry = _entry(call)
        made = _run(call, folder / "run-1.sbr")
        mismatch = first_mismatch(entry.rows, made.rows)
        if mismatch is None:
            return ""
        result = _explained(call, EntryResult(entry, "different", made, mismatch=mismatch), folder)
        return lock_text.render([result], Style(interface=Interface.ASSERTION), os.getcwd()).rstrip()

    return report_of(call.site, judge)


def update_locked(call: Locked) -> tuple[str, str]:
    """Make a call again twice, and write its entry if the bits are others than there.

    Returns:
        The report of what kept it from being written, empty for nothing; and what was done, in words.
    """
    done = ""

    def judge(folder: Path) -> str:
        nonlocal done
        before = _present(call)
        _make_folder(call)
        made, again = (_run(call, folder / f"run-{number}.sbr") for number in (1, 2))
        if first_mismatch(made.rows, again.rows) is not None:
            raise _not_repeatable(call, made, again)
        entry = _made_entry(call, made)
        if before is not None and _are_same(before, entry):
            done = f"{call.name} in {call.path}: its bits are the same, so it is left as it is"
            return ""
        write_lock(_file(call).with_entry(entry))
        what = "written" if before is None else "written again, with other bits or another seed"
        done = f"{call.name} in {call.path}: {what} (steps: {entry.steps})"
        return ""

    return report_of(call.site, judge), done


def _make_folder(call: Locked) -> None:
    """Make the folder of the lock file, in which the runs begin."""
    try:
        call.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot make the folder {printable(str(call.folder))}: {error.strerror or error}"
        raise SamebitsError(message, slug="lock-unwritable") from None


def _are_same(first: LockEntry, second: LockEntry) -> bool:
    return first.control == second.control and first_mismatch(first.rows, second.rows) is None


def _not_repeatable(call: Locked, made: LockRun, again: LockRun) -> SamebitsError:
    mismatch = first_mismatch(made.rows, again.rows)
    where = "" if mismatch is None or mismatch.last_step is None else f" from step {mismatch.last_step} on"
    message = (
        f"two runs of the function gave different bits{where}, so there is nothing to lock as {call.name}; "
        "assert_repeatable says why: fix that first"
    )
    return SamebitsError(message, slug="lock-not-repeatable")


def _made_entry(call: Locked, made: LockRun) -> LockEntry:
    info = made.info
    assert info is not None  # noqa: S101 - for the type checker
    return LockEntry(
        name=call.name,
        command=(),
        control=call.control,
        steps=info.steps,
        rows=made.rows,
        environment=here_as_locked(info).environment,
        samebits=__version__,
        test=call.test,
    )


# ---- the entry


def _file(call: Locked) -> LockFile:
    return read_lock(call.path) if os.path.lexists(call.path) else LockFile(call.path, {})


def refuse_missing(call: Locked) -> None:
    """Refuse a call without an entry that it can be compared with, before anything is run.

    Raises:
        SamebitsError: there is none (`lock-entry`), it is of another call (`lock-exists`), the runs of the
            test have another control (`lock-control`); as of `read_lock`.
    """
    _entry(call)


def _entry(call: Locked) -> LockEntry:
    entry = _present(call)
    if entry is None:
        message = (
            f"{printable(str(call.path))} has no entry {call.name}, so there is nothing to compare with; "
            f"{call.advice} writes it"
        )
        raise SamebitsError(message, slug="lock-entry")
    if entry.control != call.control:
        message = (
            f"the entry {call.name} of {printable(str(call.path))} was made {_words(entry.control)}, and the "
            f"test asks for runs {_words(call.control)}; if that is wanted, {call.advice} writes it again"
        )
        raise SamebitsError(message, slug="lock-control")
    return entry


def _present(call: Locked) -> LockEntry | None:
    """Return the entry of a call; None where there is none.

    Raises:
        SamebitsError: an entry of this name is of another test, or of a command; `lock-exists`.
    """
    entry = _file(call).entries.get(call.name)
    if entry is not None and entry.test != call.test:
        other = f"of the test {entry.test}" if entry.test else f"of the command {' '.join(entry.command)}"
        message = (
            f"the entry {call.name} of {printable(str(call.path))} is {printable(other)}, and not of "
            f"{printable(call.test)}; expected another name. If the test was renamed, delete the entry, and "
            f"{call.advice} writes it"
        )
        raise SamebitsError(message, slug="lock-exists")
    return entry


def _words(control: Control | None) -> str:
    if control is None:
        return "without a seed"
    seed = "without a seed" if control.seed is None else f"with seed {control.seed}"
    return f"{seed} in portable mode" if control.portable else seed


# ---- runs


def _run(call: Locked, record: Path, settings: tuple[RestoredSetting, ...] = ()) -> LockRun:
    """Make the call again in a fresh process.

    Raises:
        SamebitsError: it failed (`lock-run-failed`), or nothing of it can be compared (`lock-run-failed`).
    """
    given = {each.name: each.value for each in settings if each.value is not None}
    absent = frozenset(each.name for each in settings if each.value is None)
    environment = {**call.site.variables(record.parent), **control_variables(call.control), **given}
    values = str(record.with_suffix(".values"))
    recording = RecordingSettings(
        str(record), control=call.control, values=values, inventory=Inventory(changes=False)
    )
    script = Script(call.site.target, "stderr", environment, folder=str(call.folder))
    with unset(absent) if absent else nullcontext():
        (made,) = run_jobs((Job(script, recording),))
    if made.info is None or has_failed(made):
        raise run_failure(LockRun(made.record, made.info, (), failed=True, status=made.status))
    rows = rows_of(str(record), values)
    if not any(row.state or row.values for row in rows):
        reason = sentence_or_none(Reason.of(ReasonCode.NOTHING_COMPARED, "the function"))
        raise SamebitsError(f"not judged: {reason}", slug="lock-run-failed")
    return LockRun(made.record, _of_everybody(made.info), rows, failed=False, status=made.status)


def _of_everybody(info: RunInfo) -> RunInfo:
    """Return the facts of a run without what is of pytest and of this plugin: command, files, folders."""
    environment = info.environment
    code, data = table_at(environment, "code"), table_at(environment, "data")
    code = {name: row for name, row in code.items() if name != _MAIN}
    files = {
        name: row for name, row in table_at(data, "files").items() if not _OWN_FOLDERS & set(name.split("/"))
    }
    return replace(
        info, command=(), environment={**environment, "code": code, "data": {**data, "files": files}}
    )


# ---- whose a mismatch is


def _explained(call: Locked, result: EntryResult, folder: Path) -> EntryResult:
    """Find out whose a mismatch is, as far as runs of the code as it is can show."""
    other = _other_outcome(call, result, folder, REPEATS)
    if other is not None:
        return other
    result = with_environments(result)
    if result.inputs:
        return without_old_code(result)
    result = _rest(call, result, folder)
    if not has_no_reason(result):
        return result
    return _other_outcome(call, result, folder, REPEATS_WITHOUT_REASON) or result


def _other_outcome(call: Locked, result: EntryResult, folder: Path, times: int) -> EntryResult | None:
    """Make the call again, and return the result if a run gives other bits than the first; else None."""
    first = result.run
    assert first is not None  # noqa: S101 - for the type checker
    for _ in range(times):
        again = _run(call, _next(folder))
        if first_mismatch(first.rows, again.rows) is not None:
            return _nondeterminism(result, verify_records(first.record, again.record, "the function"))
    return None


def _nondeterminism(result: EntryResult, operations: Verification | None) -> EntryResult:
    return replace(result, blame=Blame.NONDETERMINISM, proof=Proof.TRIED, operations=operations)


def _next(folder: Path) -> Path:
    """Return the path of a further record."""
    return folder / f"run-{len(list(folder.glob('run-*.sbr'))) + 1}.sbr"


def _rest(call: Locked, result: EntryResult, folder: Path) -> EntryResult:
    """Try the settings of the lock that can be set here."""

    def gives_lock(settings: tuple[RestoredSetting, ...]) -> bool:
        rows = _run(call, _next(folder), settings).rows
        return first_mismatch(result.entry.rows, rows) is None

    settings = settings_of_lock(result.entry.environment, result.platform)
    if settings and gives_lock(settings):
        needed = those_needed(settings, gives_lock)
        if not all(gives_lock(needed) for _ in range(REPEATS)):
            return _nondeterminism(result, None)
        return replace(result, blame=Blame.PLATFORM, settings=needed, proof=Proof.TRIED)
    return with_rest(replace(result, tried=settings))
