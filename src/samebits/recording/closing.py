"""The closing of a record at the end of a run without a parent, and what standard error shows of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._runtime.child_bootstrap import python_code
from samebits._runtime.package import LOCATION
from samebits._text.printable import printable, printable_lines
from samebits.errors import SamebitsError
from samebits.recording.unread_words import unread_text
from samebits.records.creation import fold
from samebits.records.reader import RecordReader

if TYPE_CHECKING:
    from samebits.records.events import RunInfo


class ErrorLines:
    """Writes lines to the descriptor that was the process's standard error when it began.

    It does not use `sys.stderr`, which the script may replace. It is silent once the script has closed the
    descriptor, since the script may have opened a file of its own under that number.
    """

    def __init__(self) -> None:
        self._identity = _identity()

    @property
    def open(self) -> bool:
        """True while there is still somewhere to write."""
        return self._identity is not None and _identity() == self._identity

    def say(self, text: str) -> None:
        """Write one line, if there is still somewhere to write it."""
        self.write(f"samebits: {printable_lines(text)}\n")

    def write(self, text: str) -> None:
        """Write text as it is, if there is still somewhere to write it."""
        if not self.open:
            return
        try:
            if sys.stderr is not None:
                sys.stderr.flush()
            os.write(2, text.encode(errors="backslashreplace"))
        except (OSError, ValueError):
            return


def _identity() -> tuple[int, int] | None:
    try:
        status = os.fstat(2)
    except OSError:
        return None
    return status.st_dev, status.st_ino


_LITTLE_BYTES = 1 << 20
# Limits that the script has set are the script's.
_LIMITS = """\
import os, resource, sys
for name in ("RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_AS", "RLIMIT_DATA", "RLIMIT_CPU"):
    number = getattr(resource, name)
    hard = resource.getrlimit(number)[1]
    resource.setrlimit(number, (hard, hard))
"""
_CLOSE = """\
_, _, record, shown, silent, broken = sys.argv
if silent:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
from samebits.recording.closing import finish
finish(record, shown, broken)
"""
_spawn, _wait = getattr(os, "posix_spawn", None), os.waitpid  # the script's may be others by the end


def read_info(record: Path) -> RunInfo | None:
    """Return the facts of a recorded run; None when nothing can be read."""
    try:
        with RecordReader(record) as reader:
            return reader.info
    except SamebitsError:  # e.g. killed before the first commit
        return None


def _n_steps(record: Path, info: RunInfo) -> int:
    """Return how many steps of a run a comparison would count.

    Args:
        record: its path.
        info: what the record says of the run; its number stands where the events cannot be read.
    """
    try:
        with RecordReader(record) as reader:
            return reader.n_steps()
    except SamebitsError:
        return info.steps


def why_incomplete(record: Path) -> str:
    """Say why the writer of a record gave up, as far as that can be seen from outside."""
    free = shutil.disk_usage(record.parent).free
    return "the disk is full" if free < _LITTLE_BYTES else "it could not be written to its end"


def ending_text(record: Path, shown: str) -> str:
    """Describe the record of a run that ended by itself.

    Args:
        record: where it is.
        shown: what the user calls it.
    """
    info, shown = read_info(record), printable(shown)
    if info is None:
        return f"no record was written in {shown}"
    if info.status == "running":
        return f"{shown} is incomplete: {why_incomplete(record)}; what was written before can be read"
    steps = _n_steps(record, info)
    unread = unread_text(info.environment)
    told = f"; {unread}" if unread else ""
    return f"{steps} step{'' if steps == 1 else 's'} recorded in {shown}{told}"


def finish(record: str, shown: str, broken: str = "") -> None:
    """Make a single file of a record that was written to its end, and describe it on stderr.

    Args:
        record: where it is.
        shown: what the user calls it.
        broken: why its writer gave up; empty if it did not.
    """
    with contextlib.suppress(SamebitsError):  # no room: readers bring its log into a copy
        fold(record)
    line = printable_lines(f"samebits: {broken or ending_text(Path(record), shown)}\n")
    with contextlib.suppress(OSError):
        os.write(2, line.encode(errors="backslashreplace"))


class RecordCloser:
    """Closes the record at the end of a run that has no parent to do that, and describes it on stderr.

    A separate process does it, since it needs descriptors: in this one a thread of the script may still
    close some by their numbers. It has SIGINT blocked from its start: Ctrl-C on a terminal reaches it too.

    Args:
        record: where the record is.
        shown: what the user calls it.
        lines: whether standard error is still what it was.
    """

    def __init__(self, record: str, shown: str, lines: ErrorLines) -> None:
        code = python_code(_LIMITS, _CLOSE)
        self._command = [sys.executable, "-ISc", code, LOCATION, os.path.abspath(record), shown]
        self._environment = dict(os.environ)
        self._lines = lines

    def close(self, broken: str) -> None:
        """Close the record and say so; nothing is said where standard error is another file by now.

        Args:
            broken: why its writer gave up; empty if it did not.
        """
        for stream in (sys.stdout, sys.stderr):  # the line comes last, as the end of a run
            with contextlib.suppress(Exception):
                stream.flush()
        command = [*self._command, "" if self._lines.open else "silent", broken]
        if _spawn is not None:
            with contextlib.suppress(OSError):
                _wait(_spawn(command[0], command, self._environment, setsigmask=(signal.SIGINT,)), 0)
