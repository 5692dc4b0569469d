"""The code of a run: the script and each imported module of the user's own, by the SHA-256 of its source."""

from __future__ import annotations

import os
import sys

from samebits.environment.files import FileDigest, digest_file, installed_folders
from samebits.environment.packages import packaged_modules


class LoadedCode:
    """The code that a run loaded, as it was then: somebody may edit the files while the run goes on.

    The script is read at once, modules when `look` is called for the first time after their import. Packages
    in `site-packages` and the standard library are left out: their versions tell what they are.

    Args:
        script: its path; by default that of `__main__`, which loses it when the script has ended.
    """

    def __init__(self, script: str = "") -> None:
        self.script = script
        contents = digest_file(script) if script else None
        self._paths = {} if contents is None else {_name_of(script): script}
        self._code = {} if contents is None else {_name_of(script): contents}

    def look(self) -> None:
        """Read the modules that were imported since the last call."""
        for name, path in local_modules(self.script).items():
            shown = _name_of(path) if name == "__main__" else name
            contents = None if shown in self._code else digest_file(path)
            if contents is not None:
                self._code[shown], self._paths[shown] = contents, path

    def collect(self) -> dict[str, FileDigest]:
        """Return the contents of all code so far: of the script by its name, of modules by theirs."""
        self.look()
        return dict(sorted(self._code.items()))

    def changed(self) -> tuple[str, ...]:
        """Return the names of the code whose file is no longer what was read."""
        return tuple(name for name, seen in self._code.items() if digest_file(self._paths[name]) != seen)


def _name_of(script: str) -> str:
    return os.path.basename(os.path.realpath(script))


def local_modules(script: str = "") -> dict[str, str]:
    """Return the real path of the source of each imported module that is not installed, by its name.

    Args:
        script: as of `LoadedCode`.
    """
    installed, packaged = installed_folders(), packaged_modules()
    paths = {"__main__": os.path.realpath(script)} if os.path.isfile(script) else {}
    for name, module in list(sys.modules.items()):
        file = vars(module).get("__file__") if hasattr(module, "__dict__") else None
        if not isinstance(file, str) or name.partition(".")[0] in ("samebits", "__mp_main__"):
            continue
        path = os.path.realpath(file)
        if path.endswith((".py", ".so", ".pyd")) and not path.startswith(installed) and path not in packaged:
            paths[name] = path
    return paths
