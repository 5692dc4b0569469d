"""Which installed packages are the program itself, when a console script or `python -m package` is run."""

from __future__ import annotations

import ast
import os
import re
import site
import sys
import sysconfig
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

from samebits.recording.script_file import script_path

if TYPE_CHECKING:
    from samebits.recording.runner import Target

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
    """The folders of the packages that are the program; see `samebits.hooks.program`.

    Nothing is imported. Packages that only start other programs are left out, as is the standard library.

    Args:
        target: what is run.
    """
    names = _imported_by(target.script) if target.script is not None else [str(target.module)]
    tops = dict.fromkeys(name.partition(".")[0] for name in names)
    found = (_place_of(top) for top in tops if top not in _LAUNCHERS and top not in sys.stdlib_module_names)
    return tuple(place for place in found if place)


def _imported_by(script: str) -> list[str]:
    """The modules that a console script imports; nothing for other scripts."""
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
    """What older console scripts look up: `load_entry_point("package==1.0", "console_scripts", "name")()`."""
    found = _ENTRY_POINT.search(data)
    if found is None:
        return []
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        points = distribution(found[1].decode()).entry_points
    except PackageNotFoundError:
        return []
    return [point.module for point in points if point.name == found[2].decode()]


def _script_folders() -> set[str]:
    folders = {sysconfig.get_path("scripts"), os.path.join(site.getuserbase(), "bin")}
    return {os.path.realpath(folder) for folder in folders}


def _place_of(top: str) -> str:
    spec = PathFinder.find_spec(top, [os.getcwd(), *sys.path])
    if spec is None:
        return ""
    for folder in spec.submodule_search_locations or ():
        return os.path.realpath(folder) + os.sep
    return os.path.realpath(spec.origin) if spec.origin else ""
