"""Running other text than a source file holds, under the file's own name: how a patch is tried.

`__file__`, the lines in tracebacks and the sites of events are those of the real file; no byte code is read
or written for it. It reaches the script itself, every module that `SourceFileLoader` loads, and the processes
that the script starts by `multiprocessing`: forked ones inherit it, spawned ones find it in the dict with
preparations that they unpickle first (see `samebits.determinism.processes`). What a script starts as
`python other.py` runs the files as they are.
"""

from __future__ import annotations

import functools
import os
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING, Any

from samebits.hooks.imports import PostImport
from samebits.hooks.patching import Patches
from samebits.hooks.spawning import on_preparation

if TYPE_CHECKING:
    from types import ModuleType

    Pairs = tuple[tuple[str, str], ...]

_ENTRY = "samebits overlay"
# Runs in a spawned child, which may not be able to import samebits. It imports the script by
# `runpy.run_path`, which reads the file itself (Lib/runpy.py, `_get_code_from_file`: until 3.11 with the name
# of the run before the path, and giving the path beside the code).
_BEGIN = """
import os, runpy
from importlib.machinery import SourceFileLoader
def begin(texts, runpy, loader, realpath):
    def text_of(path):
        other = texts.get(realpath(path))
        if other is None:
            return None
        with open(other, "rb") as file:
            return file.read()
    get_code, from_file = loader.get_code, runpy._get_code_from_file
    def overlaid(self, fullname):
        path = self.get_filename(fullname)
        data = text_of(path)
        return get_code(self, fullname) if data is None else self.source_to_code(data, path)
    def overlaid_file(*arguments):
        data = text_of(arguments[-1])
        if data is None:
            return from_file(*arguments)
        code = compile(data, arguments[-1], "exec")
        return (code, arguments[-1]) if len(arguments) > 1 else code
    loader.get_code, runpy._get_code_from_file = overlaid, overlaid_file
begin(texts, runpy, SourceFileLoader, os.path.realpath)
"""


class Overlay:
    """The text that stands for some files while it is installed.

    Args:
        pairs: real path of a source file -> path of the file whose text is run instead.
    """

    def __init__(self, pairs: Pairs) -> None:
        self._texts = {os.path.realpath(path): os.path.abspath(text) for path, text in pairs}
        self._patches = Patches()
        self._imports = PostImport()

    def install(self) -> None:
        """Begin to stand for them; nothing is changed where there are none."""
        if not self._texts:
            return
        self._patch_loader()
        self._imports.install()
        on_preparation(self._imports, self._patches, self._extended)
        self._show_lines()

    def remove(self) -> None:
        """Put everything back."""
        import linecache

        self._imports.remove()
        self._patches.restore()
        for path in self._texts:
            linecache.cache.pop(path, None)

    def read(self, path: str) -> bytes | None:
        """What is to be run for a path; None for the file's own contents."""
        other = self._texts.get(os.path.realpath(path))
        if other is None:
            return None
        with open(other, "rb") as file:
            return file.read()

    def _patch_loader(self) -> None:
        original = SourceFileLoader.get_code

        @functools.wraps(original)
        def get_code(loader: Any, fullname: str) -> Any:
            path = loader.get_filename(fullname)
            data = self.read(path)
            return original(loader, fullname) if data is None else loader.source_to_code(data, path)

        self._patches.set(SourceFileLoader, "get_code", get_code)

    def _show_lines(self) -> None:
        """Have tracebacks and `inspect.getsource` show what runs."""
        import linecache

        for path in self._texts:
            data = self.read(path) or b""
            lines = data.decode(errors="replace").splitlines(keepends=True)
            linecache.cache[path] = (len(data), None, lines, path)  # without a time it is never checked

    def _extended(self, data: dict[str, Any], _spawn: ModuleType) -> dict[str, Any]:
        return {_ENTRY: _Begin(self._texts), **data}


class _Begin:
    """Becomes None when it is unpickled, and begins the overlay while it is."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (_BEGIN, {"texts": dict(self._texts)})
