"""The files of a commit, written into a folder."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from samebits.environment.repository import ask_git

if TYPE_CHECKING:
    from pathlib import Path


def write_files(repository: Path, commit: str, into: Path, seconds: float) -> bool:
    """Write all files of a commit into an empty folder.

    `git archive` would leave out files with the attribute `export-ignore`, and rewrite those with
    `export-subst`.

    Args:
        repository: a folder in it, or a bare one.
        commit: its name.
        into: the folder.
        seconds: how long git may take.

    Returns:
        whether git had the commit and wrote it.
    """
    with tempfile.TemporaryDirectory(prefix="samebits-") as folder:
        index = {"GIT_INDEX_FILE": os.path.join(folder, "index")}  # the user's own stays as it is
        tree = f"--work-tree={os.path.abspath(into)}"
        steps = (["read-tree", commit], [tree, "checkout-index", "--all", "--quiet"])
        return all(ask_git(repository, words, seconds, index) is not None for words in steps)
