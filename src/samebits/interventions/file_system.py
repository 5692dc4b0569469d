"""Interventions on facts of the file system: the order of a directory, times and inode numbers of files."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import HANDING_ON, Asker, calling_frame
from samebits.interventions.intervention import Intervention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from samebits.interventions.intervention import Replacements

FILE_TIME_NS = 1_767_225_600_123_456_789
"""2026-01-01, of every file."""
_PATHS = HANDING_ON | {"posixpath", "ntpath", "genericpath"}
_TIMES = ("st_atime", "st_mtime", "st_ctime", "st_birthtime")


def fix_listing(replacements: Replacements) -> None:
    """List directories in the order of the names."""
    rule = replacements.asker.is_asked
    replacements.replace(
        os, "listdir", lambda function, *args, **kwargs: sorted(function(*args, **kwargs)), rule
    )
    replacements.replace(
        os, "scandir", lambda function, *args, **kwargs: SortedEntries(function(*args, **kwargs)), rule
    )


class SortedEntries:
    """Replaces the iterator that `os.scandir` returns.

    Args:
        entries: the iterator; it is read and closed.
    """

    def __init__(self, entries: Any) -> None:
        with entries:
            self._entries: Iterator[Any] = iter(sorted(entries, key=lambda entry: entry.name))

    def __iter__(self) -> SortedEntries:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> SortedEntries:  # noqa: PYI034 - `Self` is new in Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the iteration."""
        self._entries = iter(())


def fix_file_times(replacements: Replacements) -> None:
    """Give every file the same times."""
    _fix_status(replacements, _with_times)


def fix_inodes(replacements: Replacements) -> None:
    """Give inode 1 to the first file that is asked about, 2 to the next one."""
    numbers: dict[tuple[int, int], int] = {}

    def with_number(status: os.stat_result) -> os.stat_result:
        number = numbers.setdefault((status.st_dev, status.st_ino), len(numbers) + 1)
        return _changed(status, {"st_ino": number})

    _fix_status(replacements, with_number)
    get_frame, inode = calling_frame, vars(os.DirEntry)["inode"]

    @functools.wraps(inode)
    def numbered(self: Any) -> int:
        if not replacements.asker.is_asked(get_frame(1)):
            return int(inode(self))
        return int(os.lstat(self.path).st_ino)

    replacements.static.set(os.DirEntry, "inode", numbered)


def _fix_status(replacements: Replacements, change: Callable[[os.stat_result], os.stat_result]) -> None:
    rule = Asker(replacements.asker.ranks, _PATHS).is_asked
    for name in ("stat", "lstat", "fstat"):
        replacements.replace(os, name, lambda f, *args, **kwargs: change(f(*args, **kwargs)), rule)
    get_frame, original = calling_frame, vars(os.DirEntry)["stat"]

    @functools.wraps(original)
    def stat(self: Any, **kwargs: Any) -> Any:
        status = original(self, **kwargs)
        return change(status) if rule(get_frame(1)) else status

    replacements.static.set(os.DirEntry, "stat", stat)


def _with_times(status: os.stat_result) -> os.stat_result:
    times: dict[str, Any] = {}
    for name in _TIMES:
        if hasattr(status, name):
            times[name], times[f"{name}_ns"] = FILE_TIME_NS / 1e9, FILE_TIME_NS
    return _changed(status, times)


def _changed(status: os.stat_result, changes: dict[str, Any]) -> os.stat_result:
    """Return the status with some fields changed."""
    kind = type(status)
    named = [name for name in dir(status) if name.startswith("st_")]
    rest = {name: changes.get(name, getattr(status, name)) for name in named}
    plain = ("st_mode", "st_ino", "st_dev", "st_nlink", "st_uid", "st_gid", "st_size")
    times = tuple(int(rest[name]) for name in _TIMES[:3])
    return kind((*(rest[name] for name in plain), *times), rest)


FILE_TIMES = Intervention(
    "file-times",
    "with the times of files fixed",
    patch=fix_file_times,
    limits="what other programs (`ls`) and C code see",
)
INODES = Intervention(
    "inodes",
    "with the inode numbers of files fixed",
    patch=fix_inodes,
    limits="what other programs (`ls`) and C code see",
)
LISTING = Intervention(
    "listing",
    "with directories listed in order",
    patch=fix_listing,
    limits="listings by other programs and C code",
)
