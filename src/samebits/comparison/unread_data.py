"""Data files of two runs that cannot be compared: at least one of the runs has no digest of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits.environment.snapshot import fact_at, table_at
from samebits.environment.unread import Unread, WhyUnread, unread_in

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_WHOLE = "./"  # the entry for the files at the top; it may hold all files


@dataclass(frozen=True, slots=True)
class UnknownData:
    """A data file of which nobody knows whether it was the same in two runs. It is not a difference.

    Args:
        name: of the file, as in the records.
        first: why the first run has no digest of it; None where it has one, or did not read the file.
        second: the same of the second run.
    """

    name: str
    first: WhyUnread | None
    second: WhyUnread | None


@dataclass(frozen=True, slots=True)
class UnknownFiles:
    """All data files that cannot be compared.

    Args:
        files: by name.
        unlisted: how many more at most the records tell of without their names.
    """

    files: tuple[UnknownData, ...] = ()
    unlisted: int = 0

    def __bool__(self) -> bool:
        return bool(self.files or self.unlisted)


def unknown_files(first: Mapping[str, Any], second: Mapping[str, Any]) -> UnknownFiles:
    """Return the data files that cannot be compared.

    A file that is gone is left out where the other run does not know it: it was a temporary one.

    Args:
        first: the environment of a run.
        second: that of the other.
    """
    data = fact_at(first, "data"), fact_at(second, "data")
    if not all(isinstance(each, dict) for each in data):
        return UnknownFiles()
    a, b = map(unread_in, data)
    names = {*a.files, *b.files}
    of_both = a.files.keys() & b.files.keys()
    known = {*of_both, *table_at(data[0], "files"), *table_at(data[1], "files")}
    files = [
        UnknownData(name, a.files.get(name), b.files.get(name))
        for name in sorted(names)
        if name in known or {a.files.get(name), b.files.get(name)} != {WhyUnread.GONE, None}
    ]
    return UnknownFiles(tuple(files), max(sum(each.unlisted.values()) for each in (a, b)))


def comparable(
    ours: Mapping[Any, Any], theirs: Mapping[Any, Any], first: object, second: object
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Leave out the entries of which it cannot be said whether they differ.

    Args:
        ours: the files of the first run, or of folders, by name.
        theirs: those of the second.
        first: what the first record has of data.
        second: what the second has.
    """
    a, b = unread_in(first), unread_in(second)
    unread = {*a.files, *b.files}
    if not unread and not a.unlisted and not b.unlisted:
        return dict(ours), dict(theirs)
    any_folder = bool(a.unlisted or b.unlisted)
    folders = [
        name
        for name in {*map(str, ours), *map(str, theirs)}
        if name.endswith("/") and (any_folder or any(_holds(name, file) for file in unread))
    ]
    return (
        {
            name: value
            for name, value in ours.items()
            if not _is_unsure(str(name), theirs, b, (unread, folders))
        },
        {
            name: value
            for name, value in theirs.items()
            if not _is_unsure(str(name), ours, a, (unread, folders))
        },
    )


def _is_unsure(
    name: str, others: Mapping[Any, Any], other: Unread, unsure: tuple[Collection[str], Collection[str]]
) -> bool:
    unread, folders = unsure
    if name in unread or any(name == folder or _holds(folder, name) for folder in folders):
        return True
    return bool(other.unlisted) and name not in others


def _holds(folder: str, name: str) -> bool:
    return folder == _WHOLE or name.startswith(folder)
