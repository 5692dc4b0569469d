"""What was read of files before, so that files that have not changed need not be read again."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

from samebits._text.caches import cache_folder
from samebits._text.files import open_to_read, write_whole

_FORMAT = 1
_LARGEST = 32 << 20  # bytes of a cache file
_MOST = 100_000  # entries


class FileCache:
    """Values that were derived from files, each valid as long as its file has the same stamp.

    A cache that is missing, damaged or cannot be written only costs time.

    Args:
        name: of the cache.
    """

    def __init__(self, name: str) -> None:
        self._path = os.path.join(cache_folder(), f"{name}.json")
        self._entries: dict[str, Any] = self._read()
        self._changed = False

    def get(self, path: str, stamp: str) -> Any:
        """Return the value of a file, None if it is not known or the file has changed since."""
        entry = self._entries.get(path)
        if isinstance(entry, list) and len(entry) == 2 and entry[0] == stamp:
            return entry[1]
        return None

    def put(self, path: str, stamp: str, value: Any) -> None:
        """Keep the value of a file; it must be what JSON can hold."""
        self._entries.pop(path, None)  # the last to come is the last to go
        self._entries[path] = [stamp, value]
        self._changed = True

    def save(self) -> None:
        """Write the cache if it has changed; of several processes that do so, the last wins."""
        if not self._changed:
            return
        entries = dict(list(self._entries.items())[-_MOST:])
        data = json.dumps({"format": _FORMAT, "entries": entries}).encode()
        with suppress(OSError, ValueError):
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            write_whole(self._path, data)

    def _read(self) -> dict[str, Any]:
        try:
            with open_to_read(self._path) as file:
                held = json.loads(file.read(_LARGEST))
            entries = held["entries"] if isinstance(held, dict) and held["format"] == _FORMAT else {}
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return {}
        return entries if isinstance(entries, dict) else {}


def stamp_of(status: os.stat_result) -> str:
    """Return what changes whenever a file is written: size, both times, and the file itself."""
    return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_dev}-{status.st_ino}"
