"""The files that a run reads, also in processes that it forks, such as the workers of a DataLoader."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from samebits._cuda.sources import sources_folder
from samebits._runtime.frames import pass_on
from samebits._runtime.package import FOLDER
from samebits.environment.files import installed_folders

if TYPE_CHECKING:
    from collections.abc import Callable

_is_file = os.path.isfile  # bound now: a script may replace what the module has
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_OF_SYSTEM = (
    "/proc/", "/sys/", "/dev/", "/etc/", "/usr/", "/lib", "/bin/", "/sbin/", "/run/", "/snap/", "/opt/conda/",
)  # fmt: skip
_OF_PYTHON = (".py", ".pyc", ".pyi", ".so", ".pyd", ".pth")
_MOST = 1_000_000  # files
_LARGEST_LOG = 256 << 20  # bytes


class DataFilesProbe:
    """Notes the name of each file that is opened for reading, by Python's audit event `open`.

    Compiled code that opens a file itself does not raise it (docs.python.org, "Audit events table"). Files
    that are mapped into memory at the end are found all the same. The process of the script holds no open
    file for this: only what it forks writes names into one, which is closed after each.

    Args:
        log: file for the names that forked processes read.
        own: beginnings of the paths that samebits itself uses in this run.
    """

    def __init__(self, log: str, own: tuple[str, ...]) -> None:
        self._log = os.path.abspath(log)
        ours = (f"{FOLDER}{os.sep}", f"{sources_folder()}{os.sep}")  # a checkout is in no installed folder
        paths = (os.path.abspath(path) for path in own if path)
        self._ignored = (*installed_folders(), *_OF_SYSTEM, *ours, *paths)
        self._read: set[str] = set()
        self._written: set[str] = set()
        self._process = os.getpid()
        self._watching = False

    def install(self) -> None:
        """Watch until `remove`; Python keeps the hook for as long as it lives."""
        with suppress(OSError):
            os.unlink(self._log)  # of a run that was killed
        self._watching = True
        sys.addaudithook(self._hook())

    def remove(self) -> None:
        """Watch nothing."""
        self._watching = False
        with suppress(OSError):
            os.unlink(self._log)

    def paths(self) -> list[str]:
        """Return the files that were read before the run wrote them, if it did; some may be gone by now."""
        self._watching = False
        read = {*self._read, *self._of_others(), *filter(_is_file, filter(self._counts, _mapped()))}
        return sorted(path for path in read if path not in self._written)

    def _hook(self) -> Callable[[str, tuple[Any, ...]], None]:
        note = self._note

        def audit(event: str, arguments: tuple[Any, ...]) -> None:
            if event != "open" or not self._watching:
                return
            try:
                note(*arguments)
            except Exception as error:  # noqa: BLE001 - it would be raised into the script
                pass_on(error)

        return audit

    def _note(self, path: object, _mode: object, flags: object) -> None:
        if not isinstance(path, (str, bytes)) or not isinstance(flags, int):
            return
        name = os.path.abspath(os.fsdecode(path))
        if flags & _WRITING:
            if name not in self._read:
                self._written.add(name)
        elif name not in self._read and self._counts(name) and len(self._read) < _MOST and _is_file(name):
            self._read.add(name)
            if os.getpid() != self._process:
                self._tell(name)

    def _tell(self, name: str) -> None:
        """Write a name for the process of the script to read."""
        file = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, os.fsencode(name) + b"\0")
        finally:
            os.close(file)

    def _counts(self, name: str) -> bool:
        return not name.startswith(self._ignored) and not name.endswith(_OF_PYTHON)

    def _of_others(self) -> set[str]:
        """Return what forked processes have read."""
        try:
            with open(self._log, "rb") as file:
                return {os.fsdecode(name) for name in file.read(_LARGEST_LOG).split(b"\0") if name}
        except OSError:
            return set()


def _mapped() -> set[str]:
    """Return the files that are mapped into this process."""
    names = set()
    with suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            parts = line.split(maxsplit=5)
            if len(parts) == 6 and parts[5].startswith("/") and ".so" not in parts[5]:
                names.add(parts[5].rstrip("\n"))
    return names
