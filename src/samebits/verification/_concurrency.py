"""Decides whether two runs of the script at the same time are safe, and faster."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.environment.resources import available_bytes, free_processors, largest_child_bytes, read_usage
from samebits.recording.probes.file_effects import NONE
from samebits.verification.isolation import is_of_tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from samebits.comparison.results import Source
    from samebits.verification._request import VerifyRequest

APART_S = 1.1
"""Seconds between the starts of two runs: a seed made of whole seconds must not be the same in both."""
_MOST_ENTRIES = 20_000
_CROWDED = 1.25  # two runs still end sooner when they need this many times the free processors
_MEMORY_RUNS = 4  # this many times the memory of one run must be free
_COMPARED = "run-"  # prefix of the names of compared records
# Draws of what stays the same for a while: two runs that begin together may find it equal, others would not.
_STEADY = ("time.time", "time.localtime", "time.gmtime", "time.ctime", "time.asctime", "time.strftime",
           "time.clock_gettime", "datetime.", "os.getloadavg", "psutil.")  # fmt: skip
# Each run would be bound to the same processors.
_BINDING = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")


@dataclass(frozen=True)
class _Use:
    """The processors that one run kept busy on average, and those that other programs did."""

    own: float
    others: float


class Concurrency:
    """Watches the compared runs, each of which has the machine for itself.

    Args:
        request: what is verified.
    """

    def __init__(self, request: VerifyRequest) -> None:
        bound = any(os.environ.get(name, "") not in ("", "false") for name in _BINDING)
        self._allowed = not (request.one_at_a_time or request.fresh or bound)
        self._folder = Path.cwd()
        self._own = os.path.abspath(request.folder)
        self._since_ns = 0
        self._notes: list[str] = []
        self._uses: list[_Use | None] = []
        self._untouched: bool | None = None

    def notes_for(self, record: str) -> str:
        """Return the file in which a run is to note its effects; empty if they need not be known.

        Args:
            record: of the run.
        """
        if not self._allowed:
            return ""
        self._notes.append(os.path.abspath(f"{record}.effects"))
        return self._notes[-1]

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """Measure what a compared run uses; the run is made in the block."""
        if not self._allowed:
            yield
            return
        self._since_ns = self._since_ns or time.time_ns()
        begun, before = time.monotonic(), read_usage()
        yield
        seconds, after = time.monotonic() - begun, read_usage()
        if before is None or after is None or seconds <= 0:
            self._uses.append(None)
            return
        own = (after.own - before.own) / seconds
        self._uses.append(_Use(own, max(0.0, (after.whole - before.whole) / seconds - own)))

    def allows_two(self) -> bool:
        """Tell whether two runs at the same time do not affect each other, and take less time than in turn.

        This is so if no compared run was seen to change or take anything outside of itself, and if there
        are enough free processors and memory.
        """
        if not (self._allowed and self._uses):
            return False
        if self._untouched is None:
            self._untouched = self.is_untouched() and not self._folder_changed()
        return self._untouched and self._has_processors() and _has_memory()

    def is_untouched(self) -> bool:
        """Tell whether all runs that were to note their effects noted that there were none."""
        return all(_read(path).split() == [NONE] for path in self._notes)

    def keep_apart(self) -> None:
        """Allow no two runs at a time from now on."""
        self._allowed = False

    def note_draws(self, drawn: Iterable[Source]) -> None:
        """Allow no two runs at a time from now on if these draws could make such runs alike.

        Args:
            drawn: what differed before the compared runs diverged.
        """
        if any(source.op.startswith(_STEADY) for source in drawn):
            self.keep_apart()

    def close(self) -> None:
        """Remove the notes."""
        for path in self._notes:
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _has_processors(self) -> bool:
        uses = [use for use in self._uses if use is not None]
        if len(uses) < len(self._uses):
            return False
        own, others = max(use.own for use in uses), max(use.others for use in uses)
        return 2 * own <= _CROWDED * free_processors(others)

    def _folder_changed(self) -> bool:
        """Tell whether a file below the working folder is new or changed, or there are too many to tell."""
        entries, outputs = 0, _own_streams()
        for folder, folders, names in os.walk(self._folder):
            folders[:] = [name for name in folders if not is_of_tools(os.path.join(folder, name))]
            entries += len(names) + len(folders)
            if entries > _MOST_ENTRIES:
                return True
            records = os.path.join(folder, "").startswith(os.path.join(self._own, ""))
            others = [name for name in names if not (records and name.startswith(_COMPARED))]
            if any(self._is_new(os.path.join(folder, name), outputs) for name in others):
                return True
        return False

    def _is_new(self, path: str, outputs: set[tuple[int, int]]) -> bool:
        try:
            status = os.lstat(path)
        except OSError:  # it is gone
            return True
        return status.st_ctime_ns >= self._since_ns and (status.st_dev, status.st_ino) not in outputs


def _own_streams() -> set[tuple[int, int]]:
    """Return the files that the output of this program goes to."""
    files = set()
    for number in (1, 2):
        with contextlib.suppress(OSError):
            status = os.fstat(number)
            files.add((status.st_dev, status.st_ino))
    return files


def _has_memory() -> bool:
    available = available_bytes()
    return available is not None and _MEMORY_RUNS * largest_child_bytes() <= available


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
