"""Bring a record file into being, and close one into a single file."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits.errors import SamebitsError
from samebits.recording.store import schema
from samebits.recording.store.reader import RecordReader

if TYPE_CHECKING:
    from samebits.recording.events import RunInfo


def create(path: Path, info: RunInfo, *, overwrite: bool) -> sqlite3.Connection:
    """Create an empty record and return the connection that writes it.

    Args:
        path: absolute.
        info: what is known of the run so far.
        overwrite: replace an existing record (never another kind of file).

    Raises:
        SamebitsError: `record-exists`, `record-busy` or `record-unwritable`.
    """
    if overwrite and os.path.isfile(path):
        _remove_record(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
    except FileExistsError:
        raise SamebitsError(_exists(path), slug="record-exists") from None
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    try:
        return _initialize(path, info)
    except (sqlite3.Error, OSError) as error:
        for name in (path, *sidecars(path)):
            with suppress(OSError):
                name.unlink()
        raise _unwritable(path, error) from None


def fold(connection: sqlite3.Connection) -> None:
    """Bring what the log holds into the record and close it: a single file is left."""
    try:
        # Not DELETE: leaving the log rewrites the first page, and a kill then must leave no journal behind.
        connection.execute("PRAGMA journal_mode=MEMORY")
    finally:
        connection.close()


def finalize(path: str | Path, **fields: Any) -> None:
    """Close a record whose writer died: fold its log into it and replace fields of its `RunInfo`.

    Args:
        path: of the record.
        fields: of `RunInfo`.

    Raises:
        SamebitsError: as `RecordReader` does, `record-busy` or `record-unwritable`.
    """
    with RecordReader(path) as reader:
        info = replace(reader.info, **fields)
    place = Path(os.path.realpath(path))
    try:
        connection = connect(place)
        try:
            connection.execute("BEGIN IMMEDIATE")
            schema.write_info(connection, info)
            connection.execute("COMMIT")
        finally:
            fold(connection)
    except sqlite3.Error as error:
        raise _busy_or_unwritable(place, error) from None


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection that writes a record of which it is the only user.

    Exclusive locking keeps the index of the log in memory: no third file, and no shared memory, which network
    file systems lack.
    """
    uri = f"{path.as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("PRAGMA synchronous=OFF")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def sidecars(path: Path) -> tuple[Path, ...]:
    """Return the files that SQLite may keep beside a record while it is open."""
    return tuple(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal"))


def _initialize(path: Path, info: RunInfo) -> sqlite3.Connection:
    connection = connect(path)  # SQLite drops the log that an earlier record of this name may have left
    try:
        connection.execute("PRAGMA journal_mode=OFF")  # the tables go to the file itself, before any log
        connection.execute(f"PRAGMA application_id={schema.APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={schema.VERSION}")
        connection.execute("BEGIN")
        for statement in schema.TABLES.values():
            connection.execute(statement)
        schema.write_info(connection, info)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode=WAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _remove_record(path: Path) -> None:
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except OSError as error:
        raise _unwritable(path, error) from None
    if header and not schema.is_record(header):
        raise SamebitsError(
            f"{schema.shown(path)} is not a samebits record and was not overwritten: give another path",
            slug="record-exists",
        )
    try:
        if header:
            _refuse_busy(path)
        path.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from None


def _refuse_busy(path: Path) -> None:
    """Refuse a record that a live writer holds; a damaged one may go."""
    try:
        connection = connect(path)
        try:
            connection.execute("BEGIN IMMEDIATE")
        finally:
            connection.close()
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise _busy_or_unwritable(path, error) from None


def _exists(path: Path) -> str:
    if path.is_dir():
        return f"{schema.shown(path)} is a directory, expected the path of a record: give a file name"
    return f"{schema.shown(path)} already exists: give another path, or allow it to be overwritten"


def _busy_or_unwritable(path: Path, error: sqlite3.Error) -> SamebitsError:
    if "locked" in str(error):
        return SamebitsError(
            f"{schema.shown(path)} is being written by another run: wait for its end, or give another path",
            slug="record-busy",
        )
    return _unwritable(path, error)


def _unwritable(path: Path, error: Exception) -> SamebitsError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return SamebitsError(
        f"cannot write the record {schema.shown(path)} ({reason}):"
        " give a path in a directory that is writable and has free space",
        slug="record-unwritable",
    )
