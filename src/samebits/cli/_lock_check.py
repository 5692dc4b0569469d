"""`samebits check` of a lock file."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._text import files
from samebits._text.printable import printable
from samebits.cli.executor_options import chosen_executor, is_elsewhere
from samebits.cli.lock import check_options
from samebits.cli.output import STATUS
from samebits.cli.terminal import Phases, style_of, write
from samebits.commands.lock.checking import check_entry, check_in_job, make_entry, tell_nobody, write_entries
from samebits.commands.lock.entry import first_mismatch
from samebits.commands.lock.file import DEFAULT, read_lock
from samebits.commands.lock.old_code import Repository
from samebits.errors import EXIT_IDENTICAL, SamebitsError
from samebits.executors.jobs import results_of
from samebits.executors.surroundings import surroundings
from samebits.report import junit, lock_json, lock_text, sarif

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from samebits.commands.lock.checking import CheckOptions
    from samebits.commands.lock.entry import LockEntry
    from samebits.commands.lock.file import LockFile
    from samebits.commands.lock.outcome import EntryResult
    from samebits.comparison.results import Verdict

_BEGINNING = 512  # bytes
_ORDER: tuple[Verdict, ...] = ("not_judged", "different", "identical")


def check_lock(options: argparse.Namespace) -> int:
    """Check entries of a lock file, and print the results.

    Returns:
        the exit status of the worst of them; 0 with `--update`.

    Raises:
        SamebitsError: as of `read_lock`; an entry does not exist (`lock-entry`); a report cannot be written
            (`report-unwritable`).
    """
    _refuse_report(options.junit, "--junit", b"<testsuites")
    _refuse_report(options.sarif, "--sarif", b"/sarif-2.1.0.json")
    lock = read_lock(options.lock or DEFAULT)
    entries = _chosen(lock, options.what)
    phases = Phases(sys.stderr)
    how = check_options(options, phases, explain=not options.quick)
    try:
        if options.update:
            _refuse_executor(options)
            return _update(lock, entries, how)
        results = _checked(lock, entries, how, options)
    finally:
        phases.clear()
    verdict = next(
        (each for each in _ORDER if any(result.verdict == each for result in results)), "identical"
    )
    if options.json:
        write(lock_json.render(results, verdict), sys.stdout)
    else:
        write(lock_text.render(results, style_of(sys.stdout), os.getcwd()), sys.stdout)
    _write_reports(options, lock, results)
    passed = options.state_only and all(_is_same_state(each) for each in results)
    return EXIT_IDENTICAL if passed else STATUS[verdict]


def _checked(
    lock: LockFile, entries: Sequence[LockEntry], how: CheckOptions, options: argparse.Namespace
) -> list[EntryResult]:
    """Check entries here one after the other, or each in a job, so that its runs are on one machine."""
    with chosen_executor(options) as executor:
        if executor is None:
            return [check_entry(lock, entry, how) for entry in entries]
        if not executor.has_folder:
            message = (
                f"--executor {options.executor} sends no repository, which a check of a lock file reads; "
                "expected --executor slurm or torchrun, or none"
            )
            raise SamebitsError(message, slug="usage")
        around = surroundings(shares_files=True)
        quiet = replace(how, progress=False, announce=tell_nobody)
        return results_of([executor.submit(check_in_job, around, lock, entry, quiet) for entry in entries])


def _refuse_executor(options: argparse.Namespace) -> None:
    """Refuse to write entries elsewhere: their environment would be that of another machine.

    Raises:
        SamebitsError: `usage`.
    """
    if is_elsewhere(options):
        message = f"--update writes what this machine gives; leave --executor {options.executor} out"
        raise SamebitsError(message, slug="usage")


def _chosen(lock: LockFile, names: Sequence[str]) -> list[LockEntry]:
    commands = {name: entry for name, entry in lock.entries.items() if not entry.test}
    for name in names:
        if name in lock.entries and name not in commands:
            message = (
                f"the entry {name} of {lock.path} is of the test {lock.entries[name].test}; pytest checks "
                "it, and `pytest --samebits-update` writes it again"
            )
            raise SamebitsError(printable(message), slug="lock-entry")
    missing = [name for name in names if name not in commands]
    if missing or not commands:
        present = ", ".join(commands) or "none"
        found = f"no entry {missing[0]}" if missing else "no entries"
        message = f"{lock.path} has {found}; expected one of its entries: {present}"
        raise SamebitsError(message, slug="lock-entry")
    return [entry for name, entry in commands.items() if not names or name in names]


def _is_same_state(result: EntryResult) -> bool:
    differs = result.mismatch is not None and result.mismatch.of_state
    return result.verdict != "not_judged" and not differs


def _update(lock: LockFile, entries: Sequence[LockEntry], how: CheckOptions) -> int:
    """Write entries again, and say which have other bits now.

    Raises:
        SamebitsError: as of `make_entry`; nothing is written then.
    """
    updated = write_entries(lock, [make_entry(entry, lock, how) for entry in entries])
    for entry in entries:
        changed = first_mismatch(entry.rows, updated.entries[entry.name].rows) is not None
        what = "written again, with other bits" if changed else "written again; its bits are the same"
        write(f"samebits: {entry.name}: {what}", sys.stderr)
    return EXIT_IDENTICAL


def _write_reports(options: argparse.Namespace, lock: LockFile, results: Sequence[EntryResult]) -> None:
    if options.junit:
        _write(options.junit, junit.render(results, os.getcwd()))
    if options.sarif:
        repository = Repository.of(lock.folder)
        root = str(repository.root if repository is not None else lock.folder)
        _write(options.sarif, sarif.render(results, root, str(lock.folder)).encode())


def _refuse_report(path: str | None, option: str, mark: bytes) -> None:
    """Refuse a path before the runs where no report can be written, or which holds something else.

    Args:
        path: where the report goes; None or empty for none.
        option: that names it.
        mark: what the beginning of each report holds.

    Raises:
        SamebitsError: `report-unwritable`.
    """
    if not path:
        return
    try:
        if os.path.lexists(path):
            with files.open_to_read(path) as file:
                head = file.read(_BEGINNING)
                if head and mark not in head:
                    message = f"{path} is there and is no such report: not overwritten; give another {option}"
                    raise SamebitsError(printable(message), slug="report-unwritable")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=Path(path).parent):
            pass
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: str, error: OSError) -> SamebitsError:
    message = f"cannot write the report {path}: {error.strerror or error}"
    return SamebitsError(printable(message), slug="report-unwritable")


def _write(path: str, data: bytes) -> None:
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        files.write_whole(path, data, mode=files.SHARED)
    except OSError as error:
        raise _unwritable(path, error) from None
