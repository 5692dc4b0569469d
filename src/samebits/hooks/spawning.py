"""What a process that `multiprocessing` or loky spawns is told before it imports the script.

loky, joblib's pool of processes, has a copy of `multiprocessing.spawn`: a dict with preparations goes to each
of its processes too, and is unpickled there first (loky/backend/popen_loky_posix.py, 3.5).
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from samebits.hooks.imports import PostImport
    from samebits.hooks.patching import Patches

    Preparation: TypeAlias = dict[str, Any]
    Extend: TypeAlias = Callable[[Preparation, ModuleType], Preparation]

_SPAWNERS = ("multiprocessing.spawn", "joblib.externals.loky.backend.spawn", "loky.backend.spawn")
_SERVER = "multiprocessing.forkserver"


def on_preparation(
    imports: PostImport,
    patches: Patches,
    extend: Extend,
    for_server: Callable[[Preparation], Preparation] = lambda data: data,
) -> None:
    """Change what is told to spawned processes, whose objects are unpickled there in the order of the dict.

    Args:
        imports: tell when a module that spawns processes is imported.
        patches: hold the changes.
        extend: gives what a process is told, from what it would be told and the module that spawns it.
        for_server: the same for the server from which others are forked: it unpickles nothing.
    """

    def patch(spawn: ModuleType) -> None:
        original = spawn.get_preparation_data

        @functools.wraps(original)
        def get_preparation_data(*args: Any, **named: Any) -> Preparation:
            data: Preparation = original(*args, **named)
            is_server = sys._getframe(1).f_globals.get("__name__") == _SERVER
            return for_server(data) if is_server else extend(data, spawn)

        patches.set(spawn, "get_preparation_data", get_preparation_data)

    for name in _SPAWNERS:
        imports.on_import(name, patch)
