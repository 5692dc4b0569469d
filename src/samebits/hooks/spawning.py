"""What a process that `multiprocessing` spawns is told before it imports the script."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from samebits.hooks.patching import Patches

    Preparation: TypeAlias = dict[str, Any]

_SERVER = "multiprocessing.forkserver"


def on_preparation(
    patches: Patches,
    spawn: ModuleType,
    extend: Callable[[Preparation], Preparation],
    for_server: Callable[[Preparation], Preparation] = lambda data: data,
) -> None:
    """Change what is told to spawned processes, whose objects are unpickled there in the order of the dict.

    Args:
        patches: hold the change.
        spawn: `multiprocessing.spawn`.
        extend: gives what a process is told, from what Python would tell it.
        for_server: the same for the server from which others are forked: it unpickles nothing.
    """
    original = spawn.get_preparation_data

    @functools.wraps(original)
    def get_preparation_data(name: str) -> Preparation:
        data: Preparation = original(name)
        is_server = sys._getframe(1).f_globals.get("__name__") == _SERVER
        return for_server(data) if is_server else extend(data)

    patches.set(spawn, "get_preparation_data", get_preparation_data)
