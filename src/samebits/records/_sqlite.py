"""Connections to the SQLite file of a record, hardened where the file may come from a stranger."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

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
