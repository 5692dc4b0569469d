"""What a reader reads: the file itself, or a copy when its writer has not closed it."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import stat
import tempfile
from pathlib import Path

from samebits.errors import SamebitsError
from samebits.recording.store import schema

_ATTEMPTS = 5


class Snapshot:
    """A record that nobody changes while it is read.

    A record with a log beside it is copied with its log, because SQLite can read a log only by writing. A
    rollback journal is never used: samebits makes none, and SQLite deletes files that a forged one names.

    Args:
        path: of the record.

    Attributes:
        size: of what is read, in bytes.

    Raises:
        SamebitsError: `record-missing`, `record-unreadable`, `record-foreign`, `record-version`,
            `record-damaged`.
    """

    def __init__(self, path: Path) -> None:
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        try:
            self._open(path)
        except (OSError, ValueError) as error:
            self.close()
            raise _unreadable(path, error) from None
        except BaseException:
            self.close()
            raise

    def connect(self) -> sqlite3.Connection:
        """Return a connection that can only read, in any thread, but in one at a time."""
        connection = sqlite3.connect(self._uri, uri=True, isolation_level=None, check_same_thread=False)
        for setting in ("query_only=ON", "trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
            connection.execute(f"PRAGMA {setting}")
        return connection

    def close(self) -> None:
        """Remove the copy, if there is one."""
        if self._copy is not None:
            self._copy.cleanup()

    def _open(self, path: Path) -> None:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would block, a device might have effects
            raise OSError(errno.EINVAL, "it is not a file")
        place = path.resolve()
        with place.open("rb") as file:
            header = file.read(100)
        schema.check_header(path, header)
        self.size = place.stat().st_size
        log = place.with_name(f"{place.name}-wal")
        if log.is_file() and log.stat().st_size:
            self._uri = self._copied(place, log).as_uri()
            return
        expected = schema.promised_size(header)
        if self.size < expected:
            raise SamebitsError(
                f"{schema.shown(path)} is damaged (found {self.size} bytes, expected {expected}):"
                " copy it again in full, or record the run again",
                slug="record-damaged",
            )
        self._uri = f"{place.as_uri()}?mode=ro&immutable=1"

    def _copied(self, place: Path, log: Path) -> Path:
        """Copy a record and its log in a state that belongs together, even while a writer writes them."""
        self._copy = tempfile.TemporaryDirectory(prefix="samebits-")
        copy = Path(self._copy.name, "record")
        for _ in range(_ATTEMPTS):
            generation = _start(log)
            shutil.copyfile(place, copy)
            if generation:
                shutil.copyfile(log, copy.with_name("record-wal"))
            # A log that was not started over in the meantime holds all pages that its writer is moving into
            # the record, so it hides a page of the copy that was half written.
            if _start(log) == generation:
                self.size = sum(file.stat().st_size for file in copy.parent.iterdir())
                return copy
            copy.with_name("record-wal").unlink(missing_ok=True)
        raise OSError(errno.EBUSY, "it changes too fast to be read while it is written")


def _start(log: Path) -> bytes:
    """Return the header of a log, which changes when the log starts over; empty when there is no log."""
    try:
        with log.open("rb") as file:
            return file.read(32)
    except FileNotFoundError:
        return b""


def _unreadable(path: Path, error: Exception) -> SamebitsError:
    shown = schema.shown(path)
    if isinstance(error, FileNotFoundError):
        return SamebitsError(f"{shown} does not exist: give the path of a record", slug="record-missing")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return SamebitsError(
        f"cannot read {shown} ({reason}): give the path of a record", slug="record-unreadable"
    )
