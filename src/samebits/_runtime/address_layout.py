"""The address layout of processes, and listings of folders that would shift it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
from contextlib import suppress
from importlib.machinery import FileFinder
from typing import TYPE_CHECKING, Any

from samebits._runtime.imports import PostImport
from samebits._runtime.patching import Patches

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_ADDR_NO_RANDOMIZE = 0x0040000  # <sys/personality.h>
_QUERY = 0xFFFFFFFF


def can_fix_layout() -> bool:
    """Tell whether address space randomisation can be switched off here (containers often forbid it)."""
    before = _personality(_QUERY)
    if before is None or _personality(before | _ADDR_NO_RANDOMIZE) is None:
        return False
    _personality(before)
    return True


def why_layout_cannot_be_fixed() -> str:
    """Return the reason why `fixed_layout` has no effect here; empty when it has one."""
    if can_fix_layout():
        return ""
    return "personality(ADDR_NO_RANDOMIZE) is refused (containers often forbid it), or this is not Linux"


def layout_is_fixed() -> bool:
    """Tell whether this process was started without address space randomisation."""
    return bool((_personality(_QUERY) or 0) & _ADDR_NO_RANDOMIZE)


@contextlib.contextmanager
def fixed_layout(*, fixed: bool = True) -> Iterator[None]:
    """Have the children that this thread starts inside begin without address space randomisation.

    Args:
        fixed: False changes nothing.
    """
    before = _personality(_QUERY) if fixed else None
    if before is None or before & _ADDR_NO_RANDOMIZE:
        yield
        return
    _personality(before | _ADDR_NO_RANDOMIZE)
    try:
        yield
    finally:
        _personality(before)


def _personality(persona: int) -> int | None:
    """Make the Linux call of that name: it sets a value and returns the former; None where it is refused."""
    if sys.platform != "linux":
        return None
    result = int(ctypes.CDLL(None).personality(ctypes.c_ulong(persona)))
    return None if result == -1 else result


_METADATA = (".dist-info", ".egg-info")


class _AnyName:
    """A set that seems to hold every name: any file may be there."""

    def __contains__(self, name: object) -> bool:
        return True


class UnlistedFinder(FileFinder):
    """A finder that asks for each file that may hold a module, and does not list the folder."""

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
        """Stop listing the folder."""
        sys.path_importer_cache.pop(self._folder, None)
        finder = _finder_of(self._folder)
        if type(finder) is FileFinder:
            finder.__class__ = UnlistedFinder
            sys.path_importer_cache[self._folder] = finder
            self._imports.install()
            self._imports.on_import("importlib.metadata", self._patch_metadata)

    def remove(self) -> None:
        """List the folder again."""
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
    """Return the folders that are not listed in this process."""
    finders = list(sys.path_importer_cache.items())
    return [folder for folder, finder in finders if isinstance(finder, UnlistedFinder)]


def leave_working_folder(patches: Patches, util: ModuleType) -> None:
    """Keep processes that `multiprocessing` starts from listing the working folder, if this one does not.

    They are started with `-c`, and would search the folder first for each module, until they are told the
    path of this process. Before Python 3.11 there is no way to prevent that.

    Args:
        patches: hold the change.
        util: `multiprocessing.util`.
    """
    original = util._args_from_interpreter_flags
    if sys.version_info < (3, 11):
        return

    @functools.wraps(original)
    def flags() -> list[str]:
        arguments: list[str] = original()
        return ["-P", *arguments] if unlisted_folders() and not sys.flags.safe_path else arguments

    patches.set(util, "_args_from_interpreter_flags", flags)


def metadata_names(folder: str) -> Iterator[str]:
    """Yield the names in a folder that belong to metadata of packages.

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
