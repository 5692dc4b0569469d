"""The code of a run: the script and each imported module of the user's own, by the SHA-256 of its source."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import TYPE_CHECKING

from samebits._torch.compiler import kernel_caches
from samebits.environment._cache import stamp_of
from samebits.environment.files import digest_file, installed_folders
from samebits.environment.packages import packaged_modules

if TYPE_CHECKING:
    from samebits.environment.files import FileDigest


class LoadedCode:
    """The code that a run loaded, as it was then: somebody may edit the files while the run goes on.

    The script is read at once, modules when `look` is called for the first time after their import. Packages
    in `site-packages` and the standard library are left out: their versions tell what they are.

    Args:
        script: its path; by default that of `__main__`, which loses it when the script has ended.
    """

    def __init__(self, script: str = "") -> None:
        self.script = script
        self._code: dict[str, FileDigest] = {}
        self._files: dict[str, tuple[str, str]] = {}  # path and stamp of each
        if script:
            self._read(_name_of(script), script)

    def look(self) -> None:
        """Read the modules that were imported since the last call; no other file is opened."""
        for name, path in _modules_outside(self.script).items():
            shown = _name_of(path) if name == "__main__" else name
            if shown not in self._code:
                self._read(shown, path)

    def collect(self) -> dict[str, FileDigest]:
        """Return the contents of all code so far: of the script by its name, of modules by theirs."""
        self.look()
        packaged = packaged_modules()
        for name in [name for name, (path, _) in self._files.items() if os.path.realpath(path) in packaged]:
            del self._code[name], self._files[name]
        return dict(sorted(self._code.items()))

    def changed(self) -> tuple[str, ...]:
        """Return the names of the code, as of `collect`, whose file is no longer what was read.

        A temporary file that is gone counts as what it was.
        """
        return tuple(name for name in self._code if self._is_changed(name))

    def _read(self, name: str, path: str) -> None:
        stamp, contents = _stamp(path), digest_file(path)
        if contents is not None:
            self._code[name], self._files[name] = contents, (path, stamp)

    def _is_changed(self, name: str) -> bool:
        path, stamp = self._files[name]
        now = _stamp(path)
        is_cleaned_up = not now and _is_temporary(path)
        return now != stamp and not is_cleaned_up and digest_file(path) != self._code[name]


def _stamp(path: str) -> str:
    try:
        return stamp_of(os.stat(path))
    except OSError:
        return ""


def _is_temporary(path: str) -> bool:
    """Tell whether a library may have generated a file and have taken it away again.

    torch does so for `torch.distributed.nn` (torch/distributed/nn/jit/instantiator.py, 2.7.1).
    """
    return path.startswith(_real_folder(tempfile.gettempdir()))


def _name_of(script: str) -> str:
    return os.path.basename(os.path.realpath(script))


def local_modules(script: str = "") -> dict[str, str]:
    """Return the real path of the source of each imported module that is not installed, by its name.

    Args:
        script: as of `LoadedCode`.
    """
    packaged = packaged_modules()
    return {name: path for name, path in _modules_outside(script).items() if path not in packaged}


def _modules_outside(script: str) -> dict[str, str]:
    """Return the real path of each imported module that somebody wrote and that no package installed."""
    installed = (*installed_folders(), *map(_real_folder, kernel_caches()))
    paths = {"__main__": os.path.realpath(script)} if os.path.isfile(script) else {}
    for name, module in list(sys.modules.items()):
        file = vars(module).get("__file__") if hasattr(module, "__dict__") else None
        if not isinstance(file, str) or name.partition(".")[0] in ("samebits", "__mp_main__"):
            continue
        path = os.path.realpath(file)
        if path.endswith((".py", ".so", ".pyd")) and not path.startswith(installed):
            paths[name] = path
    return paths


def _real_folder(folder: str) -> str:
    return os.path.join(os.path.realpath(folder), "")
