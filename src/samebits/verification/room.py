"""Whether two runs of the script can go on at the same time, and are over sooner then."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.environment.usage import available_bytes, largest_child_bytes, processors, read_usage
from samebits.verification.working_folder import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.verification.request import VerifyRequest

_MOST_ENTRIES = 20_000
_CROWDED = 1.25  # two runs that want so many times the processors that are free are still over sooner
_MEMORY_RUNS = 4  # so many times the memory of the largest process must be left


@dataclass(frozen=True)
class _Use:
    """What one run took: processors that it kept busy on average, and that other programs did."""

    own: float
    others: float


class Room:
    """Watches the compared runs, each of which has the machine for itself.

    Args:
        request: what is verified.
    """

    def __init__(self, request: VerifyRequest) -> None:
        self._allowed = not (request.one_at_a_time or request.fresh)
        self._folder = Path.cwd()
        self._own = os.path.abspath(request.folder)
        self._since_ns = 0
        self._notes: list[str] = []
        self._uses: list[_Use | None] = []
        self._answer: bool | None = None

    def notes(self, record: str) -> str:
        """The file that a compared run is to note its effects in; empty where nothing hangs on them."""
        if not self._allowed:
            return ""
        self._notes.append(os.path.abspath(f"{record}.effects"))
        return self._notes[-1]

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """Inside, one compared run is made."""
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

    def for_two(self) -> bool:
        """Whether two runs at a time do not see each other, and are over sooner than one after the other.

        It is so if no compared run changed or took anything outside of itself, as far as that is seen, and
        if processors and memory are left.
        """
        if self._answer is None:
            self._answer = self._allowed and self._is_for_two()
        return self._answer

    def close(self) -> None:
        """Remove the notes."""
        for path in self._notes:
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _is_for_two(self) -> bool:
        if not self._uses or any(map(os.path.exists, self._notes)):
            return False
        return self._has_processors() and _has_memory() and not self._folder_changed()

    def _has_processors(self) -> bool:
        uses = [use for use in self._uses if use is not None]
        if len(uses) < len(self._uses):
            return False
        own, others = max(use.own for use in uses), max(use.others for use in uses)
        return 2 * own <= _CROWDED * (processors() - others)

    def _folder_changed(self) -> bool:
        """Whether a file below the working folder was made or changed; also where there are too many."""
        entries = 0
        outputs = _own_streams()
        for folder, folders, names in os.walk(self._folder):
            folders[:] = [n for n in folders if n not in LEFT_OUT and os.path.join(folder, n) != self._own]
            entries += len(names) + len(folders)
            if entries > _MOST_ENTRIES:
                return True
            for name in names:
                with contextlib.suppress(OSError):
                    status = os.lstat(os.path.join(folder, name))
                    is_output = (status.st_dev, status.st_ino) in outputs
                    if status.st_ctime_ns >= self._since_ns and not is_output:
                        return True
        return False


def _own_streams() -> set[tuple[int, int]]:
    """The files that the output of this program goes to."""
    found = set()
    for number in (1, 2):
        with contextlib.suppress(OSError):
            status = os.fstat(number)
            found.add((status.st_dev, status.st_ino))
    return found


def _has_memory() -> bool:
    available = available_bytes()
    return available is not None and _MEMORY_RUNS * largest_child_bytes() <= available
