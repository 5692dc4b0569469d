"""What a reader reads: the file itself, or a copy when its writer has not closed it."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from samebits import files
from samebits.errors import SamebitsError
from samebits.recording.store import schema
from samebits.recording.store.connecting import connect
from samebits.recording.store.hardening import harden
from samebits.recording.store.log import LogError, log_of, rebuild


class Snapshot:
    """A record that nobody changes while it is read.

    For a record that is being written, or whose writer died, a copy is made from its log. Logs and journals
    of SQLite are never used: samebits leaves none, and SQLite deletes files that a forged one names.

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
        try:
            harden(connection, self.size)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Remove the copy, if there is one."""
        if self._copy is not None:
            self._copy.cleanup()

    def _open(self, path: Path) -> None:
        schema.check_header(path, _header(path))
        place = path.resolve()
        if self._is_rebuilt(path, log_of(place)):
            return
        header = _header(place)  # after the log: a record may be closed in between
        self.size = place.stat().st_size
        expected = schema.promised_size(header)
        if self.size < expected:
            raise SamebitsError(
                f"{schema.shown(path)} is damaged (found {self.size} bytes, expected {expected}):"
                " copy it again in full, or record the run again",
                slug="record-damaged",
            )
        self._uri = f"{place.as_uri()}?mode=ro&immutable=1"

    def _is_rebuilt(self, path: Path, log: Path) -> bool:
        """Make what a log stands for, if there is one, and read that: its writer may go on meanwhile."""
        if not log.is_file():
            return False
        self._copy = tempfile.TemporaryDirectory(prefix="samebits-")
        copy = Path(self._copy.name, "record")
        copy.touch()
        try:
            with closing(connect(copy)) as connection:
                if not rebuild(connection, log):
                    return False
        except FileNotFoundError:  # the record was made a single file just now
            return False
        except (LogError, sqlite3.Error) as error:
            raise SamebitsError(
                f"{schema.shown(path)} is damaged ({error}): record the run again", slug="record-damaged"
            ) from None
        self.size = copy.stat().st_size
        self._uri = f"{copy.as_uri()}?mode=ro&immutable=1"
        return True


def _header(place: Path) -> bytes:
    with files.open_to_read(place) as file:  # a pipe would block, a device might have effects
        return file.read(100)


def _unreadable(path: Path, error: Exception) -> SamebitsError:
    shown = schema.shown(path)
    if isinstance(error, FileNotFoundError):
        return SamebitsError(f"{shown} does not exist: give the path of a record", slug="record-missing")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return SamebitsError(
        f"cannot read {shown} ({reason}): give the path of a record", slug="record-unreadable"
    )
