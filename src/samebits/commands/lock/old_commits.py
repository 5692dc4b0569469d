"""Finds the commits whose code and data can be those that a lock was made with."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits.commands.lock.entry import DIGEST_SHOWN
from samebits.environment.files import sha256_of
from samebits.environment.snapshot import fact_at, table_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from samebits.commands.lock.entry import LockEntry
    from samebits.commands.lock.old_code import Commit, Repository

_MOST_COMMITS = 200
_MOST_CANDIDATES = 3
_LARGEST = 1 << 26  # bytes of a data file that is compared
_CODE = (".py", ".so", ".pyd")


@dataclass(frozen=True)
class Locked:
    """What is known of the tree that a lock was made with.

    Args:
        code: the beginning of the SHA-256 of each file of code, by the name of its module.
        data: the same of data files in the repository, by name relative to its root.
        commit: that was checked out; code that was not committed then is often in the commit that follows.
        lock: the lock file; the commit that last changed it is tried first.
        here: the digests of the files of code as they are now: those that git does not track, such as a
            `_version.py` that a build writes, are in no commit.
    """

    code: Mapping[str, str]
    data: Mapping[str, str]
    commit: str
    lock: Path
    here: Collection[str] = ()


def locked_tree(entry: LockEntry, environment: dict[str, Any], lock: Path, repository: Repository) -> Locked:
    """Return what an entry knows of its tree.

    Args:
        entry: of the lock.
        environment: of a run here, as a lock holds it.
        lock: the file.
        repository: that it is in.
    """
    code, here = (
        {name: row["sha256"] for name, row in table_at(facts, "code").items()}
        for facts in (entry.environment, environment)
    )
    data = dict(_tracked_data(entry.environment, os.path.realpath(lock.parent), repository))
    return Locked(code, data, entry.commit, lock, here.values())


def _tracked_data(
    environment: dict[str, Any], folder: str, repository: Repository
) -> Iterator[tuple[str, str]]:
    """Yield the names relative to the root and the digests of data files that may be in the repository."""
    root = str(repository.root)
    for name, row in table_at(environment, "data", "files").items():
        path = os.path.normpath(os.path.join(folder, os.path.expanduser(name)))
        size = fact_at(row, "size")
        is_small = isinstance(size, int) and size <= _LARGEST
        if is_small and not name.endswith("/") and path.startswith(root + os.sep):
            yield os.path.relpath(path, root).replace(os.sep, "/"), row["sha256"]


def old_commits(repository: Repository, locked: Locked) -> tuple[Commit, ...]:
    """Return commits that have the code of a lock, the likeliest first: with its data, in this history.

    Args:
        repository: that the lock is in.
        locked: what is known of the tree.
    """
    wanted = _Wanted(repository, locked)
    recorded = tuple(repository.history("-1", locked.commit or "HEAD"))
    listed = dict.fromkeys((
        *repository.history("-1", "--", str(Path(os.path.realpath(locked.lock)))),
        *(each for each in recorded if repository.is_ancestor(each.sha, "HEAD")),
        *repository.history(f"-{_MOST_COMMITS}", "HEAD"),
        *recorded,
    ))  # fmt: skip
    with_code: list[Commit] = []
    for commit in filter(wanted.code_is_in, listed):
        if wanted.data_are_in(commit):
            others = filter(wanted.code_is_in, recorded)
            return _distinct(repository, (commit, *others))
        with_code.append(commit)
    return _distinct(repository, (*(each for each in recorded if each in with_code), *with_code))


def _distinct(repository: Repository, commits: Iterable[Commit]) -> tuple[Commit, ...]:
    """Return a few commits whose trees differ, and not only in their lock files."""
    kept: list[Commit] = []
    for commit in commits:
        if len(kept) < _MOST_CANDIDATES and all(repository.differ(each.sha, commit.sha) for each in kept):
            kept.append(commit)
    return tuple(kept)


class _Wanted:
    """Tells which commits have the files of a lock."""

    def __init__(self, repository: Repository, locked: Locked) -> None:
        self._repository = repository
        self._names = set(locked.code)
        changed = (str(repository.root / name) for name in repository.changed_files("HEAD"))
        now = {(sha256_of(path) or "")[:DIGEST_SHOWN] for path in changed}
        known = {*repository.digests("HEAD", self._is_code).values(), *now}
        self._code = set(locked.code.values()) - (set(locked.here) - known)
        self._data = locked.data
        self._tracked = repository.digests("HEAD", self._data.__contains__).keys()

    def _is_code(self, name: str) -> bool:
        return name.endswith(_CODE) or name.rpartition("/")[2] in self._names

    def code_is_in(self, commit: Commit) -> bool:
        """Tell whether a commit has all files of code."""
        found = self._repository.digests(commit.sha, self._is_code).values()
        return bool(self._code) and self._code <= set(found)

    def data_are_in(self, commit: Commit) -> bool:
        """Tell whether a commit has all data files, apart from those that git does not track."""
        found = self._repository.digests(commit.sha, self._data.__contains__)
        tracked = {*found, *self._tracked}
        return all(found.get(name) == digest for name, digest in self._data.items() if name in tracked)
