"""Files by the SHA-256 of their contents: the data that a run read."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import sysconfig
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from samebits.environment._cache import FileCache, stamp_of
from samebits.environment.unread import Unread, WhyUnread, why_not_read

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    Progress = Callable[[int, int], None]

_CHUNK = 1 << 22  # bytes
_open = open  # probes watch what a script opens by another
_MOST_LISTED = 400
_SETTLED_NS = 50_000_000  # a file may be written again with the same time stamp within a tick of the clock


@dataclass(frozen=True)
class FileDigest:
    """The contents of a file, or of the files of a folder that a run read.

    Args:
        sha256: of the file; of the names and digests of the files.
        size: in bytes.
        count: of files.
    """

    sha256: str
    size: int
    count: int = 1


@dataclass(frozen=True)
class DataFacts:
    """The data that a run read.

    Args:
        files: by name: below the working folder relative, below the home folder with `~`. Where there are too
            many files to list, those of a folder are one entry, whose name ends in `/`.
        unread: why files have no digest, by name.
        unlisted: how many more have none, by the reason.
    """

    files: dict[str, FileDigest]
    unread: dict[str, WhyUnread] = field(default_factory=dict)
    unlisted: dict[WhyUnread, int] = field(default_factory=dict)


def sha256_of(path: str, report: Callable[[int], None] | None = None) -> str | None:
    """Return the SHA-256 of a regular file as hexadecimal digits; None if it cannot be read.

    Args:
        path: of the file.
        report: told the bytes of each part that was read.
    """
    try:
        return _hashed(path, report)
    except OSError:
        return None


def _hashed(path: str, report: Callable[[int], None] | None) -> str:
    """Return the SHA-256 of a regular file.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    with _open(path, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FileNotFoundError(path)
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            if report is not None:
                report(len(chunk))
    return digest.hexdigest()


def digest_file(path: str) -> FileDigest | None:
    """Return the contents of a file; None if it cannot be read."""
    status, digest = _status(path), sha256_of(path)
    return None if status is None or digest is None else FileDigest(digest, status.st_size)


def installed_folders() -> tuple[str, ...]:
    """Return the beginnings of the paths of Python, its standard library and installed packages."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [sysconfig.get_path(name) for name in names]
    folders += [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    folders += [prefix for prefix in (sys.prefix, sys.base_prefix) if prefix.count(os.sep) > 1]
    return tuple(f"{folder}{os.sep}" for folder in dict.fromkeys(map(os.path.realpath, folders)))


def digest_data(
    paths: Collection[str], folder: str, progress: Progress | None = None, changed: Collection[str] = ()
) -> DataFacts:
    """Return the digests of files that a run read. Ctrl-C stops it, and the rest is named as skipped.

    Args:
        paths: absolute.
        folder: the working folder of the run.
        progress: told the bytes that were read, and how many there are to read.
        changed: those of the files that are not what the run read any more.
    """
    cache = FileCache("files")
    why = dict.fromkeys(changed, WhyUnread.CHANGED)
    known = {
        path: digest for path in paths if path not in why and (digest := _cached(path, cache)) is not None
    }
    missing = [path for path in sorted(paths) if path not in known]
    with suppress(KeyboardInterrupt):
        _read([path for path in missing if path not in why], known, why, cache, progress)
    cache.save()
    unread = _listed(
        [(path, why.get(path, WhyUnread.SKIPPED)) for path in missing if path not in known], folder
    )
    named = {_shown(path, folder): known[path] for path in sorted(known)}
    return DataFacts(_folded(named), unread.files, unread.unlisted)


def _listed(unread: list[tuple[str, WhyUnread]], folder: str) -> Unread:
    """Name as many files as a record lists, and count the others."""
    listed, others = unread[:_MOST_LISTED], unread[_MOST_LISTED:]
    names = {_shown(path, folder): why for path, why in listed}
    return Unread(names, dict(Counter(why for _, why in others)))


def _cached(path: str, cache: FileCache) -> FileDigest | None:
    with suppress(OSError):
        status = os.stat(path)
        held = cache.get(path, stamp_of(status))
        return FileDigest(held, status.st_size) if isinstance(held, str) else None
    return None


def _read(
    paths: Iterable[str],
    known: dict[str, FileDigest],
    why: dict[str, WhyUnread],
    cache: FileCache,
    progress: Progress | None,
) -> None:
    """Hash files, into `known` or, with the reason why there is no digest, into `why`."""
    before: dict[str, os.stat_result] = {}
    for path in paths:
        try:
            status = os.stat(path)
        except OSError as error:
            why[path] = why_not_read(error)
            continue
        if stat.S_ISREG(status.st_mode):  # to open a pipe would wait for a writer
            before[path] = status
        else:
            why[path] = WhyUnread.GONE
    total, done = sum(status.st_size for status in before.values()), 0

    def report(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, total)

    for path, status in before.items():
        try:
            digest = _hashed(path, report)
            if _contents_stamp(os.stat(path)) != _contents_stamp(status):
                why[path] = WhyUnread.CHANGED
                continue
        except OSError as error:
            why[path] = why_not_read(error)
            continue
        known[path] = FileDigest(digest, status.st_size)
        if status.st_mtime_ns + _SETTLED_NS < time.time_ns():
            cache.put(path, stamp_of(status), digest)


def _contents_stamp(status: os.stat_result) -> tuple[int, int, int, int]:
    """Return what changes with the contents; a new link to a file changes one of its times only."""
    return status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino


def _status(path: str) -> os.stat_result | None:
    with suppress(OSError):
        status = os.stat(path)
        return status if stat.S_ISREG(status.st_mode) else None
    return None


def _shown(path: str, folder: str) -> str:
    """Return the name of a file without what differs between two users who have the same files."""
    for base, prefix in ((folder, ""), (os.path.expanduser("~"), "~/")):
        if path.startswith(base.rstrip(os.sep) + os.sep):
            return prefix + os.path.relpath(path, base).replace(os.sep, "/")
    return path.replace(os.sep, "/")


def _folded(files: dict[str, FileDigest]) -> dict[str, FileDigest]:
    """Put the files of folders together, the deepest first, until there are few enough entries to list."""
    depth = max((name.count("/") for name in files), default=0)
    groups = {name: [name] for name in files}
    while len(groups) > _MOST_LISTED:
        groups = {}
        for name in files:
            groups.setdefault("/".join(name.split("/")[:-1][:depth]), []).append(name)
        depth -= 1
    entries = {
        members[0] if len(members) == 1 else f"{group or '.'}/": _together(members, files)
        for group, members in groups.items()
    }
    return dict(sorted(entries.items()))


def _together(members: list[str], files: dict[str, FileDigest]) -> FileDigest:
    if len(members) == 1:
        return files[members[0]]
    digest = _sha256_together({name: files[name].sha256 for name in members})
    return FileDigest(digest, sum(files[name].size for name in members), len(members))


def _sha256_together(digests: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for name in sorted(digests):
        digest.update(f"{name}\0{digests[name]}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def sha256_of_folder(folder: Path, name: str) -> str | None:
    """Return the digest of all files below a folder, as if a run had read them; None if one cannot be read.

    Args:
        folder: the folder.
        name: of it in the record, with a slash at its end.
    """
    files = [path for path in folder.rglob("*") if path.is_file()]
    digests = {f"{name}{path.relative_to(folder).as_posix()}": sha256_of(str(path)) for path in files}
    known = {each: digest for each, digest in digests.items() if digest is not None}
    return _sha256_together(known) if len(known) == len(digests) else None
