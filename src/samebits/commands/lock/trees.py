"""Runs the code of other commits, each in a folder of its own."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.commands.lock.change import WORKING_TREE
from samebits.commands.lock.recipe import run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from samebits.commands.lock.case import Case
    from samebits.commands.lock.old_code import Repository
    from samebits.commands.lock.recipe import LockRun, Recipe


class Trees:
    """Runs other trees of the code, each in a folder of its own.

    Args:
        case: what is run.
        repository: of the code.
        scratch: real path of an empty folder.
    """

    def __init__(self, case: Case, repository: Repository, scratch: Path) -> None:
        self._case = case
        self._repository = repository
        self._scratch = scratch
        self._count = 0

    def recipe(self, commit: str, texts: Mapping[str, str]) -> Recipe:
        """Write a tree, and return the recipe of a run of it.

        Args:
            commit: the commit; empty for the working tree.
            texts: other text for some files, by name relative to the root.
        """
        self._count += 1
        tree = self._scratch / str(self._count)
        tree.mkdir()
        folder = self._repository.check_out(commit, tree)
        for name, text in texts.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        variables = {"PYTHONDONTWRITEBYTECODE": "1"}  # files of one size and one second have one byte code
        moved = (str(tree), str(self._repository.root))
        return replace(self._case.short, folder=folder, environment=variables, moved=moved)

    def run(self, commit: str, texts: Mapping[str, str], *, inventory: bool = False) -> LockRun:
        """Run a tree."""
        return run(self.recipe(commit, texts), f"tree-{self._count}", inventory=inventory)

    def gives_lock(self, commit: str, texts: Mapping[str, str]) -> bool:
        """Tell whether a tree gives the bits of the lock."""
        shown = f"commit {commit[:10]}" if commit != WORKING_TREE else "the working tree"
        self._case.announce(f"{shown} with {', '.join(texts)} as before" if texts else shown)
        made = self.run(commit, texts)
        shutil.rmtree(self._scratch / str(self._count), ignore_errors=True)
        return self._case.gives_lock(made)
