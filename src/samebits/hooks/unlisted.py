"""Looking into a folder without keeping, or even holding at once, the names that are in it.

Python lists the first folder of `sys.path`, the script's, at the first import, and keeps the names
(`FileFinder._fill_cache`, Lib/importlib/_bootstrap_external.py, 3.10 to 3.14); `importlib.metadata` lists it
when torch looks for plug-ins. What is allocated after that lies elsewhere when there is one more file, such
as a log or a checkpoint of the run before, and with addresses the order of sets of objects is another one.
"""

from __future__ import annotations

import functools
import os
import sys
from contextlib import suppress
from importlib.machinery import FileFinder
from typing import TYPE_CHECKING, Any

from samebits.hooks.imports import PostImport
from samebits.hooks.patching import Patches

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_METADATA = (".dist-info", ".egg-info")


class _AnyName:
    """Stands for a set of names: a file that is looked for may be there."""

    def __contains__(self, name: object) -> bool:
        return True


class UnlistedFinder(FileFinder):
    """Finds the modules of a folder by asking for each file that may hold one."""

    def _fill_cache(self) -> None:
        self._path_cache = self._relaxed_path_cache = _AnyName()


class UnlistedFolder:
    """A folder of `sys.path` in which modules, and metadata of packages, are found without listing it.

    An archive, or a folder that another finder serves, is left alone.

    Args:
        folder: the entry of `sys.path`.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._imports = PostImport()
        self._patches = Patches()

    def install(self) -> None:
        """Do not list it from now on."""
        sys.path_importer_cache.pop(self._folder, None)
        finder = _finder_of(self._folder)
        if type(finder) is FileFinder:
            finder.__class__ = UnlistedFinder
            sys.path_importer_cache[self._folder] = finder
            self._imports.install()
            self._imports.on_import("importlib.metadata", self._patch_metadata)

    def remove(self) -> None:
        """List it again."""
        self._imports.remove()
        self._patches.restore()
        sys.path_importer_cache.pop(self._folder, None)

    def _patch_metadata(self, metadata: ModuleType) -> None:
        path_class: Any = getattr(metadata, "FastPath", None)
        original = getattr(path_class, "children", None)
        if original is None:
            return

        @functools.wraps(original)
        def children(path: Any) -> Any:
            if path.root == self._folder:
                with suppress(OSError):  # the folder may be gone
                    return list(metadata_names(self._folder))
            return original(path)

        self._patches.set(path_class, "children", children)


def unlisted_folders() -> list[str]:
    """The folders that are not listed in this process."""
    finders = list(sys.path_importer_cache.items())
    return [folder for folder, finder in finders if isinstance(finder, UnlistedFinder)]


def leave_working_folder(patches: Patches, util: ModuleType) -> None:
    """Have processes that `multiprocessing` starts afresh not list the working folder, if this one does not.

    They are started with `-c`, and would look there for everything first, until they are told the path of
    this process. Before Python 3.11 there is no way to have that left out.

    Args:
        patches: hold the change.
        util: `multiprocessing.util`.
    """
    original = util._args_from_interpreter_flags
    if sys.version_info < (3, 11):
        return

    @functools.wraps(original)
    def flags() -> list[str]:
        given: list[str] = original()
        return ["-P", *given] if unlisted_folders() and not sys.flags.safe_path else given

    patches.set(util, "_args_from_interpreter_flags", flags)


def metadata_names(folder: str) -> Iterator[str]:
    """The names in a folder that are those of metadata of packages, one after the other.

    Raises:
        OSError: it cannot be read.
    """
    with os.scandir(folder or ".") as entries:
        for entry in entries:
            if entry.name.lower().endswith(_METADATA) or entry.name.lower() == "egg-info":
                yield entry.name


def _finder_of(folder: str) -> Any:
    for hook in sys.path_hooks:
        with suppress(ImportError):
            return hook(folder)
    return None
