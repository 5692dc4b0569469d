"""Making a record small that was kept large for a while."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from samebits.recording.store.connecting import connect

if TYPE_CHECKING:
    from pathlib import Path


def drop_contents(path: Path) -> None:
    """Take the contents of tensors out of a record; their digests stay. Where that fails it stays as it is.

    Args:
        path: of a record that is closed.
    """
    new = path.absolute().with_name(f"{path.name}-small")
    try:
        shutil.copyfile(path, new)
        shutil.copymode(path, new)
        with closing(connect(new)) as connection:
            connection.execute("DELETE FROM capture")
            connection.execute("VACUUM")
        os.replace(new, path)
    except (OSError, sqlite3.Error):
        with contextlib.suppress(OSError):
            new.unlink()
