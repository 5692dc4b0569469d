"""The code of an earlier commit, in a folder of its own, so that it can be run again."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.commands.commit_files import write_files
from samebits.commands.lock.entry import DIGEST_SHOWN
from samebits.commands.lock.file import DEFAULT
from samebits.environment.repository import ask_git
from samebits.errors import SamebitsError
from samebits.recording.naming import DEFAULT_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SECONDS = 60.0
_LARGEST = 1 << 20  # bytes of a text
_LARGE_FILE = re.compile(rb"version https://git-lfs[^\n]*\n(?:[^\n]*\n)*?oid sha256:([0-9a-f]{64})\n")
WORKING_TREE = ""
"""Stands for the working tree where a commit is named."""
_NO_RECORDS = f":(exclude,glob)**/{DEFAULT_FOLDER}/**"  # of samebits: no code, if somebody tracks them


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit.

    Args:
        sha: its name.
        subject: the first line of its message.
    """

    sha: str
    subject: str


class Repository:
    """The git repository that a lock file is in.

    Args:
        folder: of the lock file.
        root: of the repository.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self.root = root
        self.below = os.path.relpath(folder, root)
        self._digests: dict[tuple[str, str], str] = {}

    @classmethod
    def of(cls, folder: Path) -> Repository | None:
        """Return the repository of a folder; None if there is none with a commit, or no git."""
        folder = Path(os.path.realpath(folder))
        top = _git(folder, "rev-parse", "--show-toplevel")
        if top is None or _git(folder, "rev-parse", "--verify", "--quiet", "HEAD") is None:
            return None
        return cls(folder, Path(os.path.realpath(os.fsdecode(top.rstrip(b"\r\n")))))

    @property
    def is_shallow(self) -> bool:
        """True if its older commits were not fetched."""
        return (_git(self.root, "rev-parse", "--is-shallow-repository") or b"").strip() == b"true"

    @property
    def is_changed(self) -> bool:
        """True if tracked files differ from the commit that is checked out."""
        return bool((_git(self.root, "status", "--porcelain", "--untracked-files=no") or b"").strip())

    def is_ancestor(self, old: str, new: str) -> bool:
        """Tell whether a commit is in the history of another, or is that."""
        return _git(self.root, "merge-base", "--is-ancestor", old, new) is not None

    def bases(self, one: str, other: str) -> tuple[Commit, ...]:
        """Return the latest commits that are in the histories of both of two commits."""
        shas = (_git(self.root, "merge-base", "--all", one, other) or b"").decode().split()
        return tuple(commit for sha in shas for commit in self.history("-1", sha))

    def distance(self, one: str, other: str) -> int:
        """Return how many lines two commits differ in."""
        words = ("diff", "--numstat", "--no-renames", "--no-ext-diff", "-z", one, other, "--", _NO_RECORDS)
        rows = (_git(self.root, *words) or b"").split(b"\0")
        counts = [count for row in rows if row for count in row.split(b"\t")[:2]]
        return sum(int(count) if count.isdigit() else 1 for count in counts)

    def changed_files(self, first: str, second: str = "") -> tuple[str, ...]:
        """Return the names of the files that differ between two commits, or a commit and the working tree."""
        names = [first, second] if second else [first]
        words = ("diff", "--name-only", "--no-renames", "-z", *names, "--", ".", _NO_RECORDS)
        listed = _git(self.root, *words) or b""
        return tuple(os.fsdecode(name) for name in listed.split(b"\0") if name)

    def differ(self, first: str, second: str = "") -> tuple[str, ...]:
        """Return the names of `changed_files` without those of lock files."""
        return tuple(name for name in self.changed_files(first, second) if not _is_lock(name))

    def has(self, commit: str, name: str) -> bool:
        """Tell whether a commit has a file, or the working tree for an empty name."""
        return bool(self._mode(commit, name)) if commit else os.path.lexists(self.root / name)

    def text_at(self, commit: str, name: str) -> str | None:
        """Return a text file of a commit, or of the working tree for an empty name; None for no text.

        A symbolic link is no text: to write through it would change what it leads to.
        """
        data = None
        if not commit:
            with suppress(OSError):
                data = None if (self.root / name).is_symlink() else (self.root / name).read_bytes()
        elif self._mode(commit, name).startswith(b"100"):
            data = _git(self.root, "cat-file", "--filters", f"{commit}:{name}")
        try:
            return None if data is None or b"\0" in data or len(data) > _LARGEST else data.decode()
        except UnicodeDecodeError:
            return None

    def _mode(self, commit: str, name: str) -> bytes:
        """Return what kind of file a commit has of a name, as git writes it; empty for none."""
        row = _git(self.root, "ls-tree", "-z", "--full-tree", commit, "--", f":(literal){name}") or b""
        return row.partition(b" ")[0]

    def check_out(self, commit: str, into: Path, begun: float) -> Path:
        """Write the files of a commit into an empty folder, and link what git does not track.

        Args:
            commit: an empty name stands for the working tree as it is.
            into: the folder.
            begun: when the first run began, in seconds of `time.time`. What was written since then is not
                linked: one run would read the cache that another filled.

        Returns:
            the folder that stands for the one of the lock file.

        Raises:
            SamebitsError: git does not give the files; `lock-git`.
        """
        self._extract(commit or "HEAD", into)
        for name in self.changed_files("HEAD") if not commit else ():
            target = into / name
            if target.is_dir() and not target.is_symlink():  # a submodule
                continue
            target.unlink(missing_ok=True)
            if (self.root / name).is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.root / name, target)
        for name in self._untracked():
            self._link(name.rstrip("/"), into, begun)
        folder = into / self.below
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _extract(self, commit: str, into: Path) -> None:
        if not write_files(self.root, commit, into, _SECONDS):
            message = f"git does not give the files of commit {commit[:12]} of {self.root}"
            raise SamebitsError(message, slug="lock-git")

    def _link(self, name: str, into: Path, begun: float) -> None:
        source, link = self.root / name, into / name
        if link.exists() or source.name in (".git", ".samebits", "__pycache__"):
            return
        with suppress(OSError):
            is_folder = source.is_dir()
            if source.lstat().st_mtime < begun:
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(source, target_is_directory=is_folder)
            elif is_folder and not source.is_symlink():
                for each in source.iterdir():
                    self._link(f"{name}/{each.name}", into, begun)

    def _untracked(self) -> Iterator[str]:
        """Yield the names of files and whole folders that git does not track, ignored ones too."""
        for ignored in ((), ("--ignored",)):
            listed = _git(
                self.root, "ls-files", "-z", "--others", "--exclude-standard", "--directory", *ignored
            )
            yield from (os.fsdecode(name) for name in (listed or b"").split(b"\0") if name)

    def history(self, *arguments: str) -> dict[Commit, tuple[str, ...]]:
        """Return what `git log` lists, the latest first: commits, and the names of the parents of each."""
        words = ("log", "-z", "--no-show-signature", "--encoding=UTF-8", "--format=%H%x00%P%x00%s")
        answer = _git(self.root, *words, *arguments) or b""
        fields = answer.decode(errors="replace").split("\0")  # a subject can have line ends of other kinds
        rows = zip(fields[::3], fields[1::3], fields[2::3], strict=False)
        return {Commit(sha, subject): tuple(parents.split()) for sha, parents, subject in rows}

    def digests(self, commit: str, chosen: Callable[[str], bool]) -> dict[str, str]:
        """Return the beginning of the SHA-256 of files of a commit, by name.

        A file is what git writes at a checkout: `.gitattributes` can ask for other line ends there.

        Args:
            commit: its name.
            chosen: tells by the name of a file whether it is wanted.
        """
        listed = _git(self.root, "ls-tree", "-r", "-z", "--full-tree", commit) or b""
        rows = (row.partition(b"\t") for row in listed.split(b"\0") if row.startswith(b"100"))
        named = ((os.fsdecode(name), facts.split()[2].decode()) for facts, _, name in rows)
        return {name: self._sha256(blob, name) for name, blob in named if chosen(name)}

    def _sha256(self, blob: str, name: str) -> str:
        if (blob, name) not in self._digests:
            self._digests[blob, name] = self._hashed(blob, name)[:DIGEST_SHOWN]
        return self._digests[blob, name]

    def _hashed(self, blob: str, name: str) -> str:
        pointer = _LARGE_FILE.match(_git(self.root, "cat-file", "blob", blob) or b"")
        if pointer is not None:  # nothing is fetched for this
            return pointer[1].decode()
        data = _git(self.root, "cat-file", "--filters", f"--path={name}", blob)
        return "" if data is None else hashlib.sha256(data).hexdigest()


def _is_lock(name: str) -> bool:
    *folders, last = name.split("/")
    return last == DEFAULT or f"{DEFAULT}.d" in folders


def _git(folder: Path, *arguments: str) -> bytes | None:
    """Return what git prints; None if it fails or is not there."""
    return ask_git(folder, arguments, _SECONDS)
