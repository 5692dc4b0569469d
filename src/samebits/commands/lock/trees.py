"""Runs the code of other commits, each in a folder of its own."""

from __future__ import annotations

import math
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from samebits.commands.lock.old_code import WORKING_TREE
from samebits.commands.lock.recipe import run
from samebits.environment.snapshot import table_at
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
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

    def recipe(self, commit: str, texts: Mapping[str, str | None]) -> Recipe:
        """Write a tree, and return the recipe of a run of it.

        Args:
            commit: the commit; empty for the working tree.
            texts: other text for some files, by name relative to the root; None removes a file.
        """
        self._count += 1
        # A script may look at the name of its folder.
        tree = self._scratch / str(self._count) / self._repository.root.name
        tree.mkdir(parents=True)
        made = self._case.result.run
        folder = self._repository.check_out(commit, tree, math.inf if made is None else made.begun)
        for name, text in texts.items():
            put(tree, name, text)
        variables = {
            "PYTHONDONTWRITEBYTECODE": "1",  # files of one size and one second have one byte code
            **self._search_path(tree),
        }
        moved = (str(tree), str(self._repository.root))
        return replace(self._case.short, folder=folder, environment=variables, moved=moved)

    def _search_path(self, tree: Path) -> dict[str, str]:
        """Return where modules are searched, so that those of the user's tree do not stand for another's.

        `PYTHONPATH`, and an editable installation, which `pip install -e .` makes, name folders of that tree.
        """
        root = str(self._repository.root)
        given = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        sources = source_folders(table_at(self._case.environment_here, "code"))
        # Other folders keep their turn: installed packages before the standard library could hide some of it.
        folders = [*given, *(path for path in sources if _is_below(path, root))]
        moved = [_moved(path, root, str(tree)) for path in folders]
        return {"PYTHONPATH": os.pathsep.join(dict.fromkeys(moved))} if moved else {}

    def run(self, commit: str, texts: Mapping[str, str | None], *, inventory: bool = False) -> LockRun:
        """Run a tree."""
        return run(self.recipe(commit, texts), f"tree-{self._count}", inventory=inventory)

    def gives_lock(self, commit: str, texts: Mapping[str, str | None]) -> bool | None:
        """Tell whether a tree gives the bits of the lock; None if its code does not run."""
        shown = f"commit {commit[:10]}" if commit != WORKING_TREE else "the working tree"
        self._case.announce(f"{shown} with {', '.join(texts)} as before" if texts else shown)
        recipe = self.recipe(commit, texts)
        try:
            made = run(recipe, f"tree-{self._count}")
        except SamebitsError:  # it leaves no record, or steps of several threads
            return None
        finally:
            shutil.rmtree(self._scratch / str(self._count), ignore_errors=True)
        return None if made.failed else self._case.gives_lock(made)


def put(tree: Path, name: str, text: str | None) -> None:
    """Write a text into a tree, or remove it; what its links lead to stays as it is.

    Args:
        tree: a folder of its own; some of what is in it can be links to the user's files.
        name: of the file, relative to the tree.
        text: the text; None for no file.
    """
    folder = tree
    for part in name.split("/")[:-1]:
        folder /= part
        if folder.is_symlink():
            _become_real(folder)
    path = tree / name
    if text is None or path.is_symlink():
        path.unlink(missing_ok=True)
    if text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")


def _become_real(folder: Path) -> None:
    """Replace a link to a folder by a folder with links to what is in the other."""
    others = list(folder.iterdir()) if folder.is_dir() else []
    target = folder.resolve()
    folder.unlink()
    folder.mkdir()
    for other in others:
        (folder / other.name).symlink_to(target / other.name, target_is_directory=other.is_dir())


def source_folders(names: Iterable[str]) -> tuple[str, ...]:
    """Return the real paths of the folders in which an import finds modules, without importing them.

    Args:
        names: of the modules; others, such as the file name of a script, are passed over.
    """
    folders: list[str] = []
    for top in dict.fromkeys(name.partition(".")[0] for name in names):
        spec = None
        with suppress(ImportError, AttributeError, ValueError):
            spec = find_spec(top)
        if spec is not None and spec.submodule_search_locations is not None:
            folders += [os.path.dirname(os.path.realpath(path)) for path in spec.submodule_search_locations]
        elif spec is not None and spec.origin not in (None, "built-in", "frozen"):
            folders.append(os.path.dirname(os.path.realpath(spec.origin)))
    return tuple(dict.fromkeys(folders))


def _moved(path: str, root: str, tree: str) -> str:
    """Return a folder of another tree in place of one of the user's; other folders stay."""
    if not os.path.isabs(path) or not _is_below(path, root):
        return path
    return tree + os.path.realpath(path)[len(root) :]


def _is_below(path: str, root: str) -> bool:
    real = os.path.realpath(path)
    return real == root or real.startswith(root + os.sep)
