"""The code of an earlier commit, in a folder of its own, so that it can be run again."""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.commands.commit_files import write_files
from samebits.commands.lock.entry import DIGEST_SHOWN
from samebits.environment.files import sha256_of
from samebits.environment.repository import ask_git
from samebits.errors import SamebitsError
from samebits.recording.naming import DEFAULT_FOLDER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_SECONDS = 60.0
_MOST_COMMITS = 200
_LARGEST = 1 << 20  # bytes of a text
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

    def commit_with(
        self, code: Mapping[str, str], recorded: str, lock: Path, here: Collection[str] = ()
    ) -> Commit | None:
        """Return a commit that has the code of a lock.

        Args:
            code: the beginning of the SHA-256 of each file of code, by name.
            recorded: the commit that was checked out when the lock was written; code that was not committed
                then is often in the commit that follows.
            lock: the lock file; the commit that last changed it is tried first.
            here: the same of the files of code as they are now: those that git does not track, such as a
                `_version.py` that a build writes, are in no commit.

        Returns:
            None if no commit among the latest ones has all these files.
        """
        names = {os.fsencode(name) for name in code}
        known = {*self._contents("HEAD", names), *map(self._now, self.changed_files("HEAD"))}
        wanted = set(code.values()) - (set(here) - known)
        by_lock = self.history("-1", "--", str(Path(os.path.realpath(lock))))
        candidates = [
            *by_lock,
            *self.history("-1", recorded or "HEAD"),
            *self.history(f"-{_MOST_COMMITS}", "HEAD"),
        ]
        for commit in dict.fromkeys(candidates):
            if wanted and wanted <= set(self._contents(commit.sha, names)):
                return commit
        return None

    def commits_since(self, commit: str) -> tuple[Commit, ...]:
        """Return the commits after one, up to the one that is checked out, the oldest first."""
        return tuple(reversed(self.history("--first-parent", f"{commit}..HEAD")))

    def changed_files(self, first: str, second: str = "") -> tuple[str, ...]:
        """Return the names of the files that differ between two commits, or a commit and the working tree."""
        names = [first, second] if second else [first]
        words = ("diff", "--name-only", "--no-renames", "-z", *names, "--", ".", _NO_RECORDS)
        listed = _git(self.root, *words) or b""
        return tuple(os.fsdecode(name) for name in listed.split(b"\0") if name)

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

    def check_out(self, commit: str, into: Path) -> Path:
        """Write the files of a commit into an empty folder, and link what git does not track.

        Args:
            commit: an empty name stands for the working tree as it is.
            into: the folder.

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
            self._link(name, into)
        folder = into / self.below
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _extract(self, commit: str, into: Path) -> None:
        if not write_files(self.root, commit, into, _SECONDS):
            message = f"git does not give the files of commit {commit[:12]} of {self.root}"
            raise SamebitsError(message, slug="lock-git")

    def _link(self, name: str, into: Path) -> None:
        source, link = self.root / name.rstrip("/"), into / name.rstrip("/")
        if link.exists() or source.name in (".git", ".samebits", "__pycache__"):
            return
        with suppress(OSError):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(source, target_is_directory=source.is_dir())

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

    def _now(self, name: str) -> str:
        """Return the beginning of the SHA-256 of a file of the working tree."""
        return (sha256_of(str(self.root / name)) or "")[:DIGEST_SHOWN]

    def _contents(self, commit: str, names: Collection[bytes]) -> Iterator[str]:
        """Yield the beginning of the SHA-256 of each Python file of a commit, and of scripts of some names.

        A file is what git writes at a checkout: `.gitattributes` can ask for other line ends there.
        """
        listed = _git(self.root, "ls-tree", "-r", "-z", commit) or b""
        for row in listed.split(b"\0"):
            facts, _, name = row.partition(b"\t")
            is_code = name.endswith((b".py", b".so", b".pyd")) or name.rpartition(b"/")[2] in names
            if is_code and b" blob " in facts:
                yield self._sha256(facts.split()[2].decode(), os.fsdecode(name))

    def _sha256(self, blob: str, name: str) -> str:
        if (blob, name) not in self._digests:
            data = _git(self.root, "cat-file", "--filters", f"--path={name}", blob)
            digest = "" if data is None else hashlib.sha256(data).hexdigest()[:DIGEST_SHOWN]
            self._digests[blob, name] = digest
        return self._digests[blob, name]


def _git(folder: Path, *arguments: str) -> bytes | None:
    """Return what git prints; None if it fails or is not there."""
    return ask_git(folder, arguments, _SECONDS)
