"""The script or module that is run: found and read as CPython does it."""

from __future__ import annotations

import ast
import io
import marshal
import os
import re
import site
import sys
import sysconfig
from importlib.machinery import PathFinder
from importlib.util import MAGIC_NUMBER
from typing import TYPE_CHECKING, Any

from samebits._runtime.address_layout import UnlistedFinder
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from types import CodeType

    from samebits.recording.runner import Target

_PYC_HEADER_BYTES = 16


def script_path(script: str) -> str:
    """Return the absolute path as CPython makes it: `./a.py` stays in `__file__`, links are not followed."""
    return os.path.join(os.getcwd(), script)


def check_target(script: str | None) -> None:
    """Refuse a script that cannot be run, before anything is started for it. Modules are found by running.

    Raises:
        SamebitsError: `script-missing`, `script-unreadable`, `script-no-main` or `script-notebook`.
    """
    if script is None:
        return
    path = script_path(script)
    try:
        os.stat(path)
    except OSError as error:
        raise _cannot_open(script, error) from None
    if os.path.isdir(path):
        if PathFinder.find_spec("__main__", [path]) is None:
            message = f"{script} is a folder without __main__.py; expected a script, or a folder that has one"
            raise SamebitsError(message, slug="script-no-main")
    elif not os.access(path, os.R_OK):
        raise _cannot_open(script, PermissionError(13, "Permission denied"))
    elif script.endswith(".ipynb"):
        message = (
            f"{script} is a notebook, expected a script: `jupyter nbconvert --to script {script}` makes one"
        )
        raise SamebitsError(message, slug="script-notebook")


def read_script(path: str) -> bytes:
    """Return the contents of a script.

    Raises:
        SamebitsError: `script-missing` or `script-unreadable`.
    """
    try:
        with io.open_code(path) as file:
            return file.read()
    except OSError as error:
        raise _cannot_open(path, error) from None


def _cannot_open(script: str, error: OSError) -> SamebitsError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        message = f"found no file {script} (in {os.getcwd()}); expected a Python script, or -m and a module"
        return SamebitsError(message, slug="script-missing")
    message = f"cannot read {script}: {error.strerror or error}; expected a Python script that you may read"
    return SamebitsError(message, slug="script-unreadable")


def find_importer(path: str) -> Any:
    """Return what imports from a folder or archive; None for an ordinary file. CPython's cache is used."""
    cache = sys.path_importer_cache
    if path in cache:
        return cache[path]
    cache[path] = None
    for hook in sys.path_hooks:
        try:
            cache[path] = hook(path)
        except ImportError:
            continue
        break
    return cache[path]


def is_compiled(path: str, data: bytes) -> bool:
    """Tell whether CPython takes a file for a `.pyc`: by its name, or by its first two bytes."""
    return path.endswith(".pyc") or data[:2] == MAGIC_NUMBER[:2]


def load_compiled(data: bytes) -> CodeType:
    """Return the code in a `.pyc`.

    Raises:
        RuntimeError: as CPython raises it.
    """
    if data[:4] != MAGIC_NUMBER:
        raise RuntimeError("Bad magic number in .pyc file")
    try:
        code = marshal.loads(data[_PYC_HEADER_BYTES:])  # noqa: S302 - the user's own script
    except (EOFError, TypeError, ValueError):
        code = None
    if not isinstance(code, type(load_compiled.__code__)):
        raise RuntimeError("Bad code object in .pyc file")  # noqa: TRY004 - CPython's type
    return code


def uncover(folder: str, startup_modules: frozenset[str]) -> None:
    """Forget modules that were imported since the start and that `folder` has under the same name.

    samebits imports from the standard library before the script runs. A script with its own `types.py` must
    get that one. samebits keeps its own through the names it has bound.

    Args:
        folder: the first entry of `sys.path`, the script's.
        startup_modules: what a bare interpreter had imported too.
    """
    imported = {name for name in sys.modules if "." not in name} - startup_modules - {"__main__"}
    for name in imported:
        ours = getattr(sys.modules[name], "__spec__", None)
        if ours is None or ours.origin in ("built-in", "frozen"):
            continue  # found before any folder is searched
        theirs = PathFinder.find_spec(name, [folder])
        if theirs is not None and theirs.loader is not None and not _same_file(theirs.origin, ours.origin):
            _forget(name)
    if not isinstance(sys.path_importer_cache.get(folder), UnlistedFinder):
        # The script may write a module into its folder and import it: names must not be kept.
        sys.path_importer_cache.pop(folder, None)


def _same_file(path: str | None, other: str | None) -> bool:
    return path == other or (path and os.path.realpath(path)) == (other and os.path.realpath(other))


def _forget(name: str) -> None:
    del sys.modules[name]
    if name == __name__.partition(".")[0]:
        return  # submodules of samebits are looked up by their full names, and go on working
    for inner in [key for key in sys.modules if key.startswith(name + ".")]:
        del sys.modules[inner]


_MOST_BYTES = 1 << 14  # of a console script; those that pip writes have 10 lines
_ENTRY_POINT = re.compile(
    rb"""["']([\w.-]+)(?:[=<>~!][^"']*)?["'],\s*["']console_scripts["'],\s*["']([^"']+)"""
)
# They run other people's programs, which are the user's code then.
_LAUNCHERS = (
    "torch", "torchgen", "functorch", "samebits", "pytest", "IPython", "ipykernel", "coverage", "accelerate",
    "deepspeed", "debugpy", "kernprof", "line_profiler", "memory_profiler", "scalene", "viztracer",
    "pyinstrument",
)  # fmt: skip


def program_folders(target: Target) -> tuple[str, ...]:
    """Return the folders of the packages that are the program; see `samebits._runtime.frames`.

    Nothing is imported. Packages that only start other programs are left out, as is the standard library.

    Args:
        target: what is run.
    """
    names = _imported_by(target.script) if target.script is not None else [str(target.module)]
    tops = dict.fromkeys(name.partition(".")[0] for name in names)
    folders = (
        _folder_of(top) for top in tops if top not in _LAUNCHERS and top not in sys.stdlib_module_names
    )
    return tuple(folder for folder in folders if folder)


def _imported_by(script: str) -> list[str]:
    """Return the modules that a console script imports; nothing for other scripts."""
    path = os.path.realpath(script_path(script))
    if os.path.dirname(path) not in _script_folders():
        return []
    try:
        if os.path.getsize(path) > _MOST_BYTES:
            return []
        with open(path, "rb") as file:
            data = file.read()
        tree = ast.parse(data)
    except (OSError, SyntaxError, ValueError):
        return []
    names = [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    names += [n.module for n in tree.body if isinstance(n, ast.ImportFrom) and n.module and not n.level]
    return names + _named_entry_points(data)


def _named_entry_points(data: bytes) -> list[str]:
    """Return the modules that `load_entry_point("package==1.0", "console_scripts", "name")()` looks up."""
    match = _ENTRY_POINT.search(data)
    if match is None:
        return []
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        points = distribution(match[1].decode()).entry_points
    except PackageNotFoundError:
        return []
    return [point.module for point in points if point.name == match[2].decode()]


def _script_folders() -> set[str]:
    folders = {sysconfig.get_path("scripts"), os.path.join(site.getuserbase(), "bin")}
    return {os.path.realpath(folder) for folder in folders}


def _folder_of(top: str) -> str:
    spec = PathFinder.find_spec(top, [os.getcwd(), *sys.path])
    if spec is None:
        return ""
    for folder in spec.submodule_search_locations or ():
        return os.path.realpath(folder) + os.sep
    return os.path.realpath(spec.origin) if spec.origin else ""
