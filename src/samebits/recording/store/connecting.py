"""Connections that write a record."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection that writes a file which nobody else knows yet.

    No journal: whatever ends this process, the file is thrown away.
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
