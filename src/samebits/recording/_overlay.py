"""Source text that runs in place of a file's own, under the file's name: this is how a patch is tried.

`__file__`, the lines in tracebacks and the sites of events are those of the real file; no byte code is read
or written for it. It reaches the script itself, every module that `SourceFileLoader` loads, and the processes
that the script starts by `multiprocessing`: forked ones inherit it, spawned ones begin with it (see
`samebits._runtime.child_bootstrap`). What a script starts as
`python other.py` runs the files as they are.
"""

from __future__ import annotations

import functools
import os
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING, Any

from samebits._runtime.child_bootstrap import CHILDREN, Payload, Phase
from samebits._runtime.imports import PostImport
from samebits._runtime.patching import Patches

if TYPE_CHECKING:
    Pairs = tuple[tuple[str, str], ...]


class Overlay:
    """The text that replaces that of some files while it is installed.

    Args:
        pairs: real path of a source file -> path of the file whose text is run instead.
    """

    def __init__(self, pairs: Pairs) -> None:
        self._texts = {os.path.realpath(path): os.path.abspath(text) for path, text in pairs}
        self._patches = Patches()
        self._imports = PostImport()

    def install(self) -> None:
        """Begin to replace it; nothing is changed where there are no files."""
        if not self._texts:
            return
        self._patch_loader()
        self._imports.install()
        CHILDREN.register(Phase.OVERLAY, self._payload)
        self._show_lines()

    def remove(self) -> None:
        """Put everything back."""
        import linecache

        CHILDREN.unregister(Phase.OVERLAY, self._payload)
        self._imports.remove()
        self._patches.restore()
        for path in self._texts:
            linecache.cache.pop(path, None)

    def read(self, path: str) -> bytes | None:
        """Return the bytes that are run for a path; None for the file's own contents."""
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

    def _payload(self, _executable: Any) -> Payload:
        arguments = {"texts": dict(self._texts)}
        return Payload("samebits.recording._overlay", "begin_in_child", arguments, needed=True)

    def overlay_path_runs(self) -> None:
        """Replace the text in `runpy.run_path` too, by which a spawned child imports the script.

        That reads the file itself (Lib/runpy.py, `_get_code_from_file`: until 3.11 with the name of the run
        before the path, and giving the path beside the code).
        """
        import runpy

        original = runpy._get_code_from_file  # type: ignore[attr-defined]

        @functools.wraps(original)
        def get_code(*arguments: Any) -> Any:
            path = arguments[-1]
            data = self.read(path)
            if data is None:
                return original(*arguments)
            code = compile(data, path, "exec")
            return (code, path) if len(arguments) > 1 else code

        self._patches.set(runpy, "_get_code_from_file", get_code)


def begin_in_child(texts: dict[str, str]) -> Overlay:
    """Replace the same files in a process that was started afresh.

    Args:
        texts: real path of a source file -> path of the file whose text is run instead.
    """
    overlay = Overlay(tuple(texts.items()))
    overlay.install()
    overlay.overlay_path_runs()
    return overlay
