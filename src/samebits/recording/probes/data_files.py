"""The files that a run reads, also in processes that it forks or spawns, such as workers of a DataLoader."""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from samebits._cuda.sources import sources_folder
from samebits._runtime.child_bootstrap import CHILDREN, Payload, Phase
from samebits._runtime.frames import pass_on
from samebits._runtime.package import FOLDER
from samebits._torch.compiler import kernel_caches
from samebits.environment.files import installed_folders
from samebits.recording.probes.compiled_readers import ReaderWatch

if TYPE_CHECKING:
    from collections.abc import Callable

_stat, _now = os.stat, time.time_ns  # bound now: a script may replace what the modules have
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ONLY_WRITING = os.O_WRONLY | os.O_TRUNC | os.O_APPEND | os.O_EXCL
_OF_SYSTEM = (
    "/proc/", "/sys/", "/dev/", "/etc/", "/usr/", "/lib/", "/lib32/", "/lib64/", "/libx32/", "/bin/",
    "/sbin/", "/run/current-system/", "/run/opengl-driver", "/run/systemd/", "/run/udev/",
    "/snap/", "/opt/conda/",
)  # fmt: skip
_OF_PYTHON = (".py", ".pyc", ".pyi", ".so", ".pyd", ".pth")
_OF_NONE = (*_OF_PYTHON, "lock.mdb", ".mdb-lock")  # in the last two LMDB notes who reads
_MOST = 1_000_000  # files
_LARGEST_LOG = 256 << 20  # bytes


Stamp = tuple[int, int]
"""Size and time of the last change of a file."""


class DataFilesProbe:
    """Notes the name of each file that is opened for reading.

    Most are told by Python's audit events `open` and `sqlite3.connect`. Compiled code that opens a file
    itself raises none (docs.python.org, "Audit events table"): `compiled_readers` has functions that do so.
    Files that are mapped into memory at the end are found all the same. The process of the script holds no
    open file for this: only what it forks or spawns writes names into one, which is closed after each.

    Args:
        log: file for the names that other processes read.
        own: beginnings of the absolute paths that samebits itself uses in this run.
    """

    def __init__(self, log: str, own: tuple[str, ...]) -> None:
        self._log = os.path.abspath(log)
        ours = (f"{FOLDER}{os.sep}", f"{sources_folder()}{os.sep}")  # a checkout is in no installed folder
        self._ignored = (*installed_folders(), *_OF_SYSTEM, *ours, *own)
        self._read: dict[str, Stamp] = {}
        self._written: set[str] = set()
        self._process = os.getpid()
        self._since = _now()
        self._readers = ReaderWatch(self._note_compiled)
        self._watching = False

    def install(self) -> None:
        """Watch until `remove`; Python keeps the hook for as long as it lives."""
        with suppress(OSError):
            os.unlink(self._log)  # of a run that was killed
        CHILDREN.register(Phase.DATA, self._payload)
        self._watch()

    def remove(self) -> None:
        """Watch nothing."""
        self._watching = False
        self._readers.remove()
        CHILDREN.unregister(Phase.DATA, self._payload)
        with suppress(OSError):
            os.unlink(self._log)

    def begin_in(self, ignored: list[str], since: int) -> None:
        """Watch in a process that was started afresh, for the one that the probe was installed in.

        Args:
            ignored: beginnings of paths that are no data there.
            since: when the run began.
        """
        self._ignored, self._since = tuple(ignored), since
        self._process = 0  # so that each name is told
        CHILDREN.register(Phase.DATA, self._payload)
        self._watch()

    def paths(self) -> list[str]:
        """Return the files that were read before the run wrote them, if it did; some may be gone by now."""
        self._watching = False
        for name, stamp in self._of_others().items():
            self._read.setdefault(name, stamp)
        for name in _mapped():
            self._add(name)
        kept = kernel_caches()  # known only once something was compiled
        self._read = {name: stamp for name, stamp in self._read.items() if not name.startswith(kept)}
        return sorted(path for path in self._read if path not in self._written)

    def changed(self) -> list[str]:
        """Return the files that are there and are not as they were when they were opened first."""
        now = {name: _stamp_of(name) for name in self._read}
        return [name for name, stamp in self._read.items() if now[name] not in (stamp, None)]

    def _watch(self) -> None:
        self._watching = True
        self._readers.install()
        sys.addaudithook(self._hook())

    def _payload(self, _executable: Any) -> Payload:
        arguments = {"log": self._log, "ignored": list(self._ignored), "since": self._since}
        return Payload(__name__, begin_in_spawned.__name__, arguments)

    def _hook(self) -> Callable[[str, tuple[Any, ...]], None]:
        events: dict[str, Callable[..., None]] = {"open": self._note, "sqlite3.connect": self._note_database}

        def audit(event: str, arguments: tuple[Any, ...]) -> None:
            if event not in events or not self._watching:
                return
            try:
                events[event](*arguments)
            except Exception as error:  # noqa: BLE001 - it would be raised into the script
                pass_on(error)

        return audit

    def _note(self, path: object, _mode: object, flags: object) -> None:
        if not isinstance(path, (str, bytes)) or not isinstance(flags, int):
            return
        name = os.path.abspath(os.fsdecode(path))
        if not flags & _WRITING:
            self._add(name)
        elif flags & _ONLY_WRITING or not self._add(name, empty=False):
            self._written.update({name} - self._read.keys())

    def _note_database(self, path: object) -> None:
        """Take in a database of SQLite, with the log beside it that may hold its last changes."""
        given = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
        if given in ("", ":memory:"):
            return
        if given.startswith("file:"):
            from urllib.parse import unquote  # late: few scripts give an address

            given = unquote(given.removeprefix("file:").partition("?")[0])
        for name in (os.path.abspath(given), f"{os.path.abspath(given)}-wal"):
            if not self._add(name, empty=False):
                self._written.update({name} - self._read.keys())

    def _note_compiled(self, name: str) -> None:
        """Take in a file that compiled code opens, unless the run wrote it, which the file's time tells."""
        if self._watching and name not in self._written and name not in self._read:
            stamp = _stamp_of(name)
            if stamp is not None and stamp[1] >= self._since:
                self._written.add(name)
            else:
                self._add(name)

    def _add(self, name: str, *, empty: bool = True) -> bool:
        """Take in a file that is read.

        Args:
            name: absolute.
            empty: whether an empty file counts.

        Returns:
            False where there is nothing to read.
        """
        if name in self._read or not self._counts(name) or len(self._read) >= _MOST:
            return True
        stamp = _stamp_of(name)
        if stamp is None or not (empty or stamp[0]):
            return False
        self._read[name] = stamp
        if os.getpid() != self._process:
            self._tell(name, stamp)
        return True

    def _tell(self, name: str, stamp: Stamp) -> None:
        """Write a name for the process of the script to read."""
        if name in self._written:
            return
        file = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, b"%d %d " % stamp + os.fsencode(name) + b"\0")
        finally:
            os.close(file)

    def _counts(self, name: str) -> bool:
        return not name.startswith(self._ignored) and not name.endswith(_OF_NONE)

    def _of_others(self) -> dict[str, Stamp]:
        """Return what other processes have read, as it was when they first did."""
        read: dict[str, Stamp] = {}
        with suppress(OSError), open(self._log, "rb") as file:
            for line in file.read(_LARGEST_LOG).split(b"\0"):
                with suppress(ValueError):  # cut off
                    size, time_ns, name = line.split(b" ", 2)
                    read.setdefault(os.fsdecode(name), (int(size), int(time_ns)))
        return read


def begin_in_spawned(log: str, ignored: list[str], since: int) -> DataFilesProbe:
    """Watch in a process that was started afresh.

    Args:
        log: file for the names.
        ignored: as of `DataFilesProbe.begin_in`.
        since: the same.
    """
    probe = DataFilesProbe(log, ())
    probe.begin_in(ignored, since)
    return probe


def _stamp_of(name: str) -> Stamp | None:
    """Return what tells two states of a file apart; None where there is no regular file."""
    try:
        status = _stat(name)
    except (OSError, ValueError):
        return None
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def _mapped() -> set[str]:
    """Return the files that are mapped into this process."""
    names = set()
    with suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            parts = line.split(maxsplit=5)
            if len(parts) == 6 and parts[5].startswith("/") and ".so" not in parts[5]:
                names.add(parts[5].rstrip("\n"))
    return names
