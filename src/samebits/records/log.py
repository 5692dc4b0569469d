"""The log beside a record that is being written: future rows of its tables, in independent pieces.

A piece is a head (see `FRAME`), rows as JSON and the bytes that belong to them. SQLite is not used: it would
hold descriptors in the user's process (see `appending`). Whoever reads the record inserts the rows of the log
into its tables, or into those of a copy.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits._text import files
from samebits.records import _schema

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence
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
