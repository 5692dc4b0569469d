"""The git repository that a script is in: the commit, and what was changed since."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits._text.git_names import quoted_in_diff
from samebits._text.masking import masked_patch
from samebits.environment.files import sha256_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

_SECONDS = 1.0  # for a question to git
_SECONDS_OF_DIFF = 10.0
_LARGEST_DIFF = 1 << 20  # characters, as JSON
_LARGEST_FILE = 1 << 18  # bytes of one changed file
_MOST_FILES = 500
# Git must neither refresh its index on disk nor start a monitor of the repository's files.
_GIT = (
    "git", "--no-optional-locks",
    "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "diff.relative=false",
)  # fmt: skip
# Git sets them for its hooks, and they name the repository of the commit (`git rev-parse --local-env-vars`).
_OF_A_HOOK = frozenset((
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DIR", "GIT_INDEX_FILE", "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_WORK_TREE",
))  # fmt: skip
_DISTRUST = (b"dubious ownership", b"unsafe repository")
_DIFF = (
    "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames",
    "--src-prefix=a/", "--dst-prefix=b/", "--unified=3", "--submodule=short", "--ignore-submodules=dirty",
)  # fmt: skip


@dataclass(frozen=True)
class SourceFacts:
    """The repository that the script is in.

    Args:
        commit: the commit that is checked out.
        changed: whether tracked files differ from it.
    """

    commit: str
    changed: bool


@dataclass(frozen=True)
class Patch:
    """What was changed since the commit, secrets masked.

    Args:
        diff: as `git diff` prints it, for `git apply`; empty without a change. A byte that is no UTF-8 is
            a lone surrogate, as `surrogateescape` makes it.
        left_out: files that are too large or binary, each with its SHA-256.
        masked: whether a secret was masked, so that the diff does not give exactly the files of the run.
        folder: the working folder of the run below that of the repository, `.` for the latter itself; None
            where it was outside.
    """

    diff: str = ""
    left_out: tuple[tuple[str, str], ...] = ()
    masked: bool = False
    folder: str | None = None


def collect_source(directory: Path) -> SourceFacts | None:
    """Ask git for the commit of a directory; None if there is no git, no repository or no commit.

    Args:
        directory: in the repository.
    """
    answer = ask_git(directory, ["status", "--porcelain=v2", "--branch", "--untracked-files=no", "-z"])
    if answer is None:
        return None
    lines = [line for line in answer.decode(errors="replace").split("\0") if line]
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "(initial)")
    changed = any(not line.startswith("#") for line in lines)
    return None if commit == "(initial)" else SourceFacts(commit, changed)


def collect_patch(
    directory: Path,
    also: Iterable[str] = (),
    working_folder: str = "",
    mask: Callable[[str], str] = masked_patch,
) -> Patch | None:
    """Return what differs from the commit in the working tree; None if git does not tell in time.

    Args:
        directory: in the repository.
        also: absolute paths of files that belong to the run; those that git does not track are shown as new.
        working_folder: of the run.
        mask: masks the secrets in a patch, and leaves its lines as many as they are.
    """
    top = ask_git(directory, ["rev-parse", "--show-toplevel"])
    changed = ask_git(directory, [*_DIFF, "HEAD", "--name-only", "-z"], _SECONDS_OF_DIFF)
    if top is None or changed is None:
        return None
    root = os.fsdecode(top.rstrip(b"\r\n"))
    names = [os.fsdecode(name) for name in changed.split(b"\0") if name]
    small, left_out = _divide(root, names)
    folder = _below(root, working_folder) if working_folder else None
    tracked = _diff_of(directory, small)
    if tracked is None:
        return None
    diff = tracked + "".join(_new_file(root, name) for name in _untracked(root, also))
    if len(json.dumps(diff)) > _LARGEST_DIFF:
        left_out = tuple((name, sha256_of(os.path.join(root, name)) or "") for name in names[:_MOST_FILES])
        return Patch("", left_out, folder=folder)
    text = mask(diff)
    return Patch(text, left_out, masked=text != diff, folder=folder)


def root_of(folder: Path) -> str | None:
    """Return the folder of the repository that a folder is in; None if it is in none."""
    path = os.path.realpath(folder)
    while not os.path.exists(os.path.join(path, ".git")):
        path, below = os.path.dirname(path), path
        if path == below:
            return None
    return path


def _below(root: str, folder: str) -> str | None:
    relative = os.path.relpath(os.path.realpath(folder), root)
    return None if relative.startswith("..") else relative.replace(os.sep, "/")


def _divide(root: str, names: Sequence[str]) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """Return the changed files that are small enough for a diff, and the others with their digests."""
    small, large = [], []
    for name in names[:_MOST_FILES]:
        path = os.path.join(root, name)
        with suppress(OSError):
            if os.lstat(path).st_size > _LARGEST_FILE:
                large.append((name, sha256_of(path) or ""))
                continue
        small.append(name)
    return small, tuple(large)


def _diff_of(directory: Path, names: Sequence[str]) -> str | None:
    if not names:
        return ""
    specs = [f":(top,literal){name}" for name in names]
    answer = ask_git(directory, [*_DIFF, "--binary", "HEAD", "--", *specs], _SECONDS_OF_DIFF)
    # A line in another encoding than UTF-8 must come out of the record with the bytes that it had.
    return None if answer is None else answer.decode(errors="surrogateescape")


def _untracked(root: str, files: Iterable[str]) -> list[str]:
    """Return the names of those files below the root that git does not track."""
    inside = [path for path in map(os.path.realpath, files) if path.startswith(root + os.sep)]
    names = [os.path.relpath(path, root).replace(os.sep, "/") for path in inside]
    if not names:
        return []
    specs = [f":(top,literal){name}" for name in names]
    answer = ask_git(root, ["ls-files", "-z", "--full-name", "--", *specs])
    tracked = set() if answer is None else {os.fsdecode(name) for name in answer.split(b"\0")}
    return sorted(set(names) - tracked)


def _new_file(root: str, name: str) -> str:
    """Return the diff that makes a new text file; empty for one that is too large or no text."""
    path = os.path.join(root, name)
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read(_LARGEST_FILE + 1)
        mode = "100755" if os.stat(path).st_mode & stat.S_IXUSR else "100644"
    except OSError:
        return ""
    if not text or len(text) > _LARGEST_FILE or "\0" in text:
        return ""
    lines = text.removesuffix("\n").split("\n")
    body = "".join(f"+{line}\n" for line in lines)
    end = "" if text.endswith("\n") else "\\ No newline at end of file\n"
    old, new = quoted_in_diff(f"a/{name}"), quoted_in_diff(f"b/{name}")
    head = f"diff --git {old} {new}\nnew file mode {mode}\n--- /dev/null\n+++ {new}\n"
    return f"{head}@@ -0,0 +1,{len(lines)} @@\n{body}{end}"


def git_variables(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment variables for git, which looks for the repository from the folder on.

    Args:
        more: further ones.
    """
    ours = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    return {**ours, **(more or {})}


def ask_git(
    directory: Path | str,
    words: Sequence[str],
    seconds: float = _SECONDS,
    variables: Mapping[str, str] | None = None,
) -> bytes | None:
    """Ask git a question about a directory; None if it does not answer.

    Args:
        directory: in the repository.
        words: the command.
        seconds: how long git may take.
        variables: environment variables for git beside those of this process.
    """
    done = _run_git(directory, words, seconds, variables)
    return None if done is None or done.returncode else done.stdout


def is_distrusted(directory: Path | str) -> bool:
    """Tell whether git refuses the repository of a directory because another user owns it.

    Its words are "dubious ownership" from git 2.38 on and "unsafe repository" before (`safe.directory` in its
    documentation).
    """
    done = _run_git(directory, ["rev-parse", "--git-dir"], _SECONDS, {"LC_ALL": "C"})
    return done is not None and done.returncode != 0 and any(text in done.stderr for text in _DISTRUST)


def _run_git(
    directory: Path | str, words: Sequence[str], seconds: float, variables: Mapping[str, str] | None
) -> subprocess.CompletedProcess[bytes] | None:
    """Run git; None if it could not be, or not in time."""
    try:
        return subprocess.run(
            [*_GIT, "-C", str(directory), *words],
            capture_output=True, check=False, timeout=seconds, stdin=subprocess.DEVNULL,
            env=git_variables(variables),
        )  # fmt: skip
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
