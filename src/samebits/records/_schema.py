"""The tables of a record, and connections to its SQLite file."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
import zlib
from typing import TYPE_CHECKING, Any

from samebits._runtime.package import __version__
from samebits.errors import SamebitsError
from samebits.records._stored_notes import stored

if TYPE_CHECKING:
    from pathlib import Path

    from samebits.records.events import RunInfo

_SETTINGS = ("query_only=ON", "trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0")
# For `sqlite3_limit`; `Connection.setlimit` is new in Python 3.11. Our own statements need far less.
_LIMITS = {
    "SQLITE_LIMIT_SQL_LENGTH": 100_000,
    "SQLITE_LIMIT_COLUMN": 100,
    "SQLITE_LIMIT_EXPR_DEPTH": 20,
    "SQLITE_LIMIT_COMPOUND_SELECT": 3,
    "SQLITE_LIMIT_VDBE_OP": 25_000,
    "SQLITE_LIMIT_FUNCTION_ARG": 8,
    "SQLITE_LIMIT_ATTACHED": 0,
    "SQLITE_LIMIT_LIKE_PATTERN_LENGTH": 50,
    "SQLITE_LIMIT_VARIABLE_NUMBER": 20,
    "SQLITE_LIMIT_TRIGGER_DEPTH": 1,
    "SQLITE_LIMIT_WORKER_THREADS": 0,
}
_SHORTEST_LIMIT = 1 << 16  # SQLite's own statements and messages are values too
_SWITCHES = {"DEFENSIVE": True, "TRUSTED_SCHEMA": False, "ENABLE_TRIGGER": False, "ENABLE_VIEW": False}


def harden(connection: sqlite3.Connection, size: int) -> None:
    """Make a connection write nothing, and run nothing that its database contains.

    Call this before the first statement, because that one reads the schema.

    Args:
        connection: to the database.
        size: of its file, in bytes; no value in it can be longer.
    """
    if hasattr(connection, "setlimit"):
        for name, value in {**_LIMITS, "SQLITE_LIMIT_LENGTH": max(size, _SHORTEST_LIMIT)}.items():
            if hasattr(sqlite3, name):
                connection.setlimit(getattr(sqlite3, name), value)
    if hasattr(connection, "setconfig"):  # new in Python 3.12
        for name, on in _SWITCHES.items():
            connection.setconfig(getattr(sqlite3, f"SQLITE_DBCONFIG_{name}"), on)
    for setting in _SETTINGS:
        connection.execute(f"PRAGMA {setting}")


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection that writes a file which no other process knows yet.

    It keeps no journal: if this process ends early, the file is thrown away.
    """
    uri = f"{path.as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=OFF")
        connection.execute("PRAGMA synchronous=OFF")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


VERSION = 4
READABLE = (3, VERSION)
"""The versions that can be read. They differ in how notes are stored, and in nothing that is compared."""

APPLICATION_ID = 0x73626974  # "sbit"
MAGIC = b"SQLite format 3\0"
DIGEST_BYTES = 16
NO_SITE = -1
LONGEST_TEXT = 1 << 16
"""Characters of a text; longer texts are cut when they are written and when they are read."""

LONGEST_JSON = 4 << 20
"""Characters of one column of table `run`."""

MOST_DEPTH = 40
"""Levels of the JSON in such a column."""

MOST_EVENTS = 1 << 16
"""Events in one row."""

HEAD = struct.Struct("<qiiiiiiiiBB")
"""An event: seq, step, op, site, forward site, module, thread, arguments, layout, kind code, has links."""

KIND_OFFSET = HEAD.size - 2
"""Offset of the kind code, one byte, in an event."""

LINK = struct.Struct("<ii")
"""A link: memory, writer."""

RUN_COLUMNS = (
    "id, samebits, command, level, status, exit_status, failure, steps, torch, environment, control,"
    " notes, replay"
)
EVENT_COLUMNS = "first_seq, last_seq, first_step, last_step, checksum, heads, digests, links"

TABLES = {
    "run": "CREATE TABLE run (id INTEGER PRIMARY KEY, samebits TEXT NOT NULL, command TEXT NOT NULL,"
    " level TEXT NOT NULL, status TEXT NOT NULL, exit_status INTEGER, failure TEXT NOT NULL,"
    " steps INTEGER NOT NULL, torch TEXT NOT NULL, environment TEXT NOT NULL,"
    " control TEXT NOT NULL, notes TEXT NOT NULL, replay TEXT NOT NULL)",
    "text": "CREATE TABLE text (id INTEGER PRIMARY KEY, value TEXT NOT NULL)",
    "site": "CREATE TABLE site (id INTEGER PRIMARY KEY, file INTEGER NOT NULL, line INTEGER NOT NULL,"
    " function INTEGER NOT NULL)",
    "tensor": "CREATE TABLE tensor (id INTEGER PRIMARY KEY, role INTEGER NOT NULL, name INTEGER NOT NULL,"
    " dtype INTEGER NOT NULL, shape TEXT NOT NULL)",
    "layout": "CREATE TABLE layout (id INTEGER PRIMARY KEY, tensors TEXT NOT NULL)",
    "event": "CREATE TABLE event (first_seq INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL,"
    " first_step INTEGER NOT NULL, last_step INTEGER NOT NULL, checksum INTEGER NOT NULL,"
    " heads BLOB NOT NULL, digests BLOB NOT NULL, links BLOB NOT NULL)",
    "capture": "CREATE TABLE capture (id INTEGER PRIMARY KEY, seq INTEGER NOT NULL,"
    " position INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL)",
}


def insert(table: str, columns: str) -> str:
    """Return the statement that writes one row; running it twice changes nothing."""
    marks = ", ".join("?" for _ in columns.split(","))
    return f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({marks})"  # noqa: S608  # our own names


def create_tables(connection: sqlite3.Connection) -> None:
    """Turn an empty database into a record without a run."""
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={VERSION}")
    for statement in TABLES.values():
        connection.execute(statement)


def write_info(connection: sqlite3.Connection, info: RunInfo) -> None:
    """Write the one row of table `run`."""
    connection.execute(insert("run", RUN_COLUMNS), info_row(info))


def info_row(info: RunInfo) -> tuple[object, ...]:
    """Return the one row of table `run`."""
    values = (info.command, info.environment, info.control, stored(info.notes), info.replay)
    columns = [json.dumps(bounded(value), default=str) for value in values]
    command, environment, control, notes, replay = columns
    texts = [storable(text) for text in (info.level, info.status, info.failure, info.torch)]
    level, status, failure, torch = texts
    row = (1, __version__, command, level, status, info.exit_status, failure, info.steps, torch)
    return (*row, environment, control, notes, replay)


def checksum(*blobs: bytes) -> int:
    """Return the CRC-32 of concatenated blobs: it detects decay, not malice."""
    value = 0
    for blob in blobs:
        value = zlib.crc32(blob, value)
    return value


def storable(text: str) -> str:
    """Return a text that UTF-8 can hold (file names may be any bytes) and that is not too long."""
    return cut(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def cut(text: str, most: int = LONGEST_TEXT) -> str:
    """Shorten a text to at most `most` characters; different texts stay different."""
    if len(text) <= most:
        return text
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    note = f"… ({len(text)} characters, {digest})"
    return text[: most - len(note)] + note


def bounded(value: Any, depth: int = MOST_DEPTH) -> Any:
    """Return a JSON value with its long texts cut.

    Raises:
        ValueError: it is nested more than `depth` levels deep.
    """
    if depth < 0:
        raise ValueError("JSON that is nested too deeply")
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, dict):
        return {cut(str(name)): bounded(each, depth - 1) for name, each in value.items()}
    return [bounded(each, depth - 1) for each in value] if isinstance(value, (list, tuple)) else value


def shown(path: str | Path) -> str:
    """Return a path as messages show it: on one line, whatever characters its name has."""
    text = str(path)
    return text if text.isprintable() else repr(text)


def reason_of(error: Exception) -> str:
    """Return the reason for an error, in the operating system's words if it has any."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def damaged(path: Path, reason: object) -> SamebitsError:
    """Return the error for a damaged record."""
    return SamebitsError(f"{shown(path)} is damaged ({reason}): record the run again", slug="record-damaged")


def is_record(header: bytes) -> bool:
    """Tell whether these are the first 100 bytes of a record, of any version."""
    return len(header) == 100 and header.startswith(MAGIC) and _integer(header, 68) == APPLICATION_ID


def check_header(path: Path, header: bytes) -> None:
    """Refuse a file that is not a record of a version that can be read.

    Args:
        path: for the message.
        header: the first 100 bytes of the file, or as many as there are.

    Raises:
        SamebitsError: `record-foreign` or `record-version`.
    """
    if not is_record(header):
        problem = "is empty" if not header else "is not a samebits record"
        raise SamebitsError(
            f"{shown(path)} {problem}: give a record that `samebits run` or `samebits verify` wrote",
            slug="record-foreign",
        )
    version = _integer(header, 60)
    if version not in READABLE:
        age = "a newer" if version > VERSION else "an older"
        raise SamebitsError(
            f"{shown(path)}: found record version {version}, this samebits reads version {VERSION}:"
            f" read it with {age} samebits, or record the run again",
            slug="record-version",
        )


def promised_size(header: bytes) -> int:
    """Return the size in bytes that a closed record has according to its header."""
    page = int.from_bytes(header[16:18], "big")
    return (65536 if page == 1 else page) * _integer(header, 28)


def _integer(header: bytes, offset: int) -> int:
    return int.from_bytes(header[offset : offset + 4], "big")
