"""The log beside a record that is being written: appended piece by piece, and read after a kill.

A piece is a head (see `FRAME`), rows as JSON and the bytes that belong to them. SQLite is not used: it would
hold descriptors in the user's process (see `appending`). Whoever reads the record inserts the rows of the log
into its tables, or into those of a copy.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import struct
import sys
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from samebits._runtime.frames import is_from_outside, pass_on
from samebits._text import files
from samebits.records import _schema

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from samebits.records.events import RunInfo

FRAME = struct.Struct("<4sIII")
"""Four letters, CRC-32 of everything behind the head, bytes of JSON, bytes of contents."""

_LETTERS = b"sblg"
_MOST_BYTES = 256 << 20  # of one piece; no piece of the writer comes near it
_MOST_TEXT = 64 << 20  # of its JSON, which takes many times as much in memory
_BLOBS = {"event": 3, "capture": 1}
"""Number of columns at the end of a table that are bytes; the JSON holds their lengths."""

_COLUMNS = {
    "text": "id, value",
    "site": "id, file, line, function",
    "tensor": "id, role, name, dtype, shape",
    "layout": "id, tensors",
    "event": _schema.EVENT_COLUMNS,
    "capture": "id, seq, position, checksum, data",
    "run": _schema.RUN_COLUMNS,
}
_WRITER, _CLOSED = "writer", "closed"


class LogError(ValueError):
    """A log was changed after it was written. A torn end is no error: its writer may have been killed."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One piece of a log.

    Args:
        contents: the rows of each table, as in the JSON; or the process that writes the log.
        blobs: the bytes of those rows, concatenated.
    """

    contents: dict[str, Any]
    blobs: bytes


def log_of(record: Path) -> Path:
    """Return the path of a record's log."""
    return record.with_name(f"{record.name}-log")


def frame(rows: Mapping[str, Sequence[tuple[Any, ...]]], *, closed: bool = False) -> bytes:
    """Return a piece that holds rows.

    Args:
        rows: by table, in the order in which they are written.
        closed: this is the last piece of the writer.
    """
    contents: dict[str, Any] = {}
    blobs: list[bytes] = []
    for table, table_rows in rows.items():
        n_blobs = _BLOBS.get(table, 0)
        if n_blobs:
            contents[table] = [(*row[:-n_blobs], *map(len, row[-n_blobs:])) for row in table_rows]
            blobs += [blob for row in table_rows for blob in row[-n_blobs:]]
        elif table_rows:
            contents[table] = table_rows
    if closed:
        contents[_CLOSED] = True
    return _packed(contents, b"".join(blobs))


def first_frame(info: RunInfo) -> bytes:
    """Return the first piece of a log: the process that writes it, and the facts of the run."""
    return _packed({_WRITER: _this_process(), "run": [_schema.info_row(info)]}, b"")


def rebuild(connection: sqlite3.Connection, log: Path) -> bool:
    """Build the record that a log describes, in an empty database.

    Nothing is written to the tables of the record itself, which a stranger may have made.

    Returns:
        False when the log does not even describe the run.

    Raises:
        LogError: the log is not as its writer wrote it.
        OSError: it cannot be read.
        sqlite3.Error: the database cannot be written.
    """
    _schema.create_tables(connection)
    connection.execute("BEGIN")
    _insert_rows(connection, log)
    connection.execute("COMMIT")
    return bool(connection.execute("SELECT count(*) FROM run").fetchone()[0])


def _insert_rows(connection: sqlite3.Connection, log: Path) -> None:
    for piece in frames(log):
        at = 0
        for table, columns in _COLUMNS.items():
            rows = piece.contents.get(table, [])
            if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
                raise LogError("its log has something other than rows in a table")
            statement, width = _schema.insert(table, columns), columns.count(",") + 1
            for row in rows:
                if len(row) != width:
                    raise LogError("its log has a row of the wrong length")
                values, at = _with_blobs(row, _BLOBS.get(table, 0), piece.blobs, at)
                try:
                    connection.execute(statement, values)
                except (ValueError, OverflowError):  # a number or a text that SQLite cannot hold
                    raise LogError("its log has a value that no record can hold") from None


def frames(log: Path) -> Iterator[Frame]:
    """Yield the pieces of a log, up to the point where its writer ended.

    Raises:
        LogError: a complete piece is not as it was written.
    """
    with files.open_to_read(log, follow=False) as file:
        while True:
            body = _next_body(file)
            if body is None:
                return
            text, blobs = body
            try:
                contents = json.loads(text, parse_constant=_no_constant)
            except (ValueError, RecursionError):
                contents = None
            if not isinstance(contents, dict):
                raise LogError("its log holds something other than rows")
            yield Frame(contents, blobs)


def is_written(log: Path) -> bool:
    """Tell whether a live process is writing a log; False if that cannot be determined."""
    writer, closed = None, False
    try:
        for piece in frames(log):
            writer = piece.contents.get(_WRITER, writer)
            closed = bool(piece.contents.get(_CLOSED))
    except (OSError, LogError):
        return False
    return not closed and isinstance(writer, dict) and _lives(writer)


def _next_body(file: BinaryIO) -> tuple[bytes, bytes] | None:
    head = file.read(FRAME.size)
    if len(head) < FRAME.size:
        return None
    letters, checksum, n_text, n_blobs = FRAME.unpack(head)
    if letters != _LETTERS:
        raise LogError("a piece of its log does not begin as it should")
    if n_text + n_blobs > os.fstat(file.fileno()).st_size - file.tell():
        return None  # the last piece of a killed writer
    if n_text > _MOST_TEXT or n_text + n_blobs > _MOST_BYTES:
        raise LogError("its log has a piece that is too large")
    body = file.read(n_text + n_blobs)
    if zlib.crc32(body) != checksum:
        raise LogError("its log does not match its checksums")
    return body[:n_text], body[n_text:]


def _no_constant(name: str) -> Any:
    raise ValueError(name)  # NaN and infinity are not JSON


def _with_blobs(row: list[Any], n_blobs: int, blobs: bytes, at: int) -> tuple[list[Any], int]:
    for column in range(len(row) - n_blobs, len(row)):
        length = row[column]
        if type(length) is not int or not 0 <= length <= len(blobs) - at:
            raise LogError("its log has fewer bytes than its rows say")
        row[column] = blobs[at : at + length]
        at += length
    if any(isinstance(value, list | dict) for value in row):
        raise LogError("its log has a value of the wrong type")
    return row, at


def _packed(contents: dict[str, Any], blobs: bytes) -> bytes:
    body = json.dumps(contents, separators=(",", ":")).encode() + blobs
    return FRAME.pack(_LETTERS, zlib.crc32(body), len(body) - len(blobs), len(blobs)) + body


def _this_process() -> dict[str, Any]:
    pid = os.getpid()
    return {"pid": pid, "started": _start_of(pid), "machine": _machine()}


def _lives(writer: dict[str, Any]) -> bool:
    """Tell whether the process named in a log is alive: on this machine, started when the log says."""
    pid = writer.get("pid")
    if type(pid) is not int or pid <= 0 or writer.get("machine") != _machine():
        return False
    if sys.platform == "linux":
        return _start_of(pid) == writer.get("started") != ""
    if os.name != "posix":  # os.kill would end it
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _start_of(pid: int) -> str:
    """Return when a process started, in ticks since boot; empty if it has ended or cannot be seen."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if len(fields) < 20 or fields[0] in (b"Z", b"X") else fields[19].decode("ascii", "replace")


def _machine() -> str:
    """Return what identifies this boot of the machine and the namespace of its process numbers."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            boot = file.read().strip().decode("ascii", "replace")
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


TRANSIENT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
"""Errors after which the same piece may succeed later, because nothing of it was written."""

Identity: TypeAlias = "tuple[int, int, int, bytes]"
"""Device, inode, size and first bytes of a file."""

_HEAD_BYTES = 32
_FLAGS = os.O_RDWR | os.O_APPEND
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY", "O_CLOEXEC"):
    _FLAGS |= getattr(os, _name, 0)


class AppendedFile:
    """A new file that grows by whole pieces only.

    Args:
        path: absolute; no file may exist there yet.

    Raises:
        OSError: it cannot be created.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        descriptor = files.create(path)
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        self._path = os.fspath(path)
        self._device, self._inode = status.st_dev, status.st_ino
        self._size, self._head = 0, b""
        # Bound now: the script may replace functions of `os`.
        self._append = _append_in_one_call()

    def append(self, data: bytes) -> None:
        """Append a piece, all of it or nothing.

        Raises:
            OSError: it was not written; after an error in `TRANSIENT`, trying again makes sense.
        """
        head, size = self._head or data[:_HEAD_BYTES], self._size + len(data)
        try:
            error = self._append(self._path, (self._device, self._inode, self._size, self._head), data)
        except BaseException:  # a signal handler raised, perhaps after everything was written
            if self._has_grown_to(size):
                self._head, self._size = head, size
            raise
        if error:
            reason = "another file is in its place" if error == errno.ESTALE else os.strerror(error)
            raise OSError(error, reason)
        self._head, self._size = head, size

    def _has_grown_to(self, size: int) -> bool:
        try:
            status = os.stat(self._path, follow_symlinks=False)
        except OSError:
            return False
        return (status.st_dev, status.st_ino, status.st_size) == (self._device, self._inode, size)


def emptied(path: str) -> AppendedFile:
    """Return a new file to append to; a file that exists under its path is deleted first.

    Raises:
        OSError: it cannot be created, or the path is not that of a regular file.
    """
    absolute = os.path.abspath(path)
    if files.refuse_irregular(absolute):
        os.unlink(absolute)
    return AppendedFile(absolute)


def _append_in_one_call() -> Callable[[str, Identity, bytes], int]:
    """Return the C function, during whose call no other code of the process runs, or else its Python twin."""
    try:
        from samebits import _reader
    except ImportError:
        return append
    one_call: Any = getattr(_reader, "append", None)
    return append if one_call is None or os.name != "posix" else one_call


def append(path: str, identity: Identity, data: bytes) -> int:
    """Do what `samebits._reader.append` does, as nearly as Python can: return 0 or an error number."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        pass_on(error)
        return error.errno or errno.EIO
    try:
        status = os.fstat(descriptor)
        head = os.read(descriptor, len(identity[3])) if stat.S_ISREG(status.st_mode) else None
        if (status.st_dev, status.st_ino, status.st_size, head) != identity:
            return errno.ESTALE
        return _append_whole(descriptor, status.st_size, data)
    except OSError as error:
        pass_on(error)
        return error.errno or errno.EIO
    finally:
        os.close(descriptor)


def _append_whole(descriptor: int, size: int, data: bytes) -> int:
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except BaseException as error:
        os.ftruncate(descriptor, size)
        if not isinstance(error, OSError) or is_from_outside(error):
            raise
        return error.errno or errno.EIO
    return 0
