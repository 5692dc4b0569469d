"""Control reaches the processes that a script starts through `multiprocessing`, loky or `os.fork`.

A forked process inherits everything; it gets a scope of its own, so that generators made there without a seed
have keys of their own. NumPy's and torch's global generators go on from the inherited state, as without
control; Python's `random`, which reseeds itself from the system's entropy in every forked child
(Lib/random.py, `register_at_fork`), is seeded by key instead.

A spawned process, or one from the fork server, first unpickles a dict with preparations, before it imports
the script as `__mp_main__` (Lib/multiprocessing/spawn.py, `_main`, the same from 3.10 to 3.14). An entry of
that dict begins control as it is unpickled. It needs nothing of samebits to be unpickled, so a child that
cannot import samebits runs on without control, and says so.
"""

from __future__ import annotations

import functools
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import samebits
from samebits.determinism.control import Control
from samebits.determinism.process import acting, thread_name
from samebits.determinism.seeds import fit
from samebits.hooks.imports import PostImport
from samebits.hooks.patching import Patches
from samebits.hooks.spawning import on_preparation
from samebits.hooks.unlisted import UnlistedFolder, leave_working_folder, unlisted_folders

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from samebits.determinism.process import Active

_ENTRY = "samebits"
_MAIN_KEYS = ("init_main_from_path", "init_main_from_name", "main_path")
# Runs in the child. Its `sys.path` is not the parent's yet and begins with the working directory, so the
# package is loaded from where it is.
_BEGIN = """
import sys
try:
    if "samebits" not in sys.modules:
        from importlib.util import module_from_spec, spec_from_file_location
        spec = spec_from_file_location(
            "samebits", folder + "/__init__.py", submodule_search_locations=[folder]
        )
        sys.modules["samebits"] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules["samebits"])
    from samebits.determinism.processes import begin_in_child
    begin_in_child(control, unlisted)
    if hidden:
        sys.modules.pop("samebits", None)
except Exception as error:
    if "begin_in_child" not in globals():
        sys.modules.pop("samebits", None)
    try:
        if tell:
            reason = "%s: %s" % (type(error).__name__, error)
            print("samebits: warning: no control in child processes (" + reason + ")", file=sys.stderr)
    except Exception:
        pass
"""
# The activations that were begun in this process because its parent had one: they last as long as it does.
_BEGUN: list[Any] = []


class ChildProcesses:
    """Carries control into child processes.

    Args:
        active: the activation whose control and scope the children get.
    """

    def __init__(self, active: Active) -> None:
        self._active = active
        self._patches = Patches()
        self._imports = PostImport()
        self._told: set[Any] = set()

    def install(self) -> None:
        """Carry it into the processes that are started from now on."""
        for name in ("fork", "forkpty"):
            if hasattr(os, name):
                self._patch_fork(name)
        self._imports.install()
        on_preparation(self._imports, self._patches, self._extended, _without_main)
        self._imports.on_import("multiprocessing.util", self._patch_util)

    def remove(self) -> None:
        """Put everything back."""
        self._imports.remove()
        self._patches.restore()

    def _patch_util(self, util: ModuleType) -> None:
        leave_working_folder(self._patches, util)

    def _next_scope(self) -> tuple[int | str, ...]:
        active = acting(self._active)
        return (*active.scope, "process", thread_name(), active.number("process"))

    def _patch_fork(self, name: str) -> None:
        original = getattr(os, name)

        @functools.wraps(original)
        def fork() -> Any:
            scope = self._next_scope()
            result = original()
            pid = result if isinstance(result, int) else result[0]
            if pid == 0:
                self._enter_forked(scope)
            return result

        self._patches.set(os, name, fork)

    def _enter_forked(self, scope: tuple[int | str, ...]) -> None:
        # After the functions registered with `os.register_at_fork`, that of `random` among them.
        active, random = acting(self._active), sys.modules.get("random")
        active.enter_scope(*scope)
        if random is not None and active.source_seed is not None and active.control.seeds("python"):
            random.seed(fit(active.source_seed, "python"))

    def _extended(self, data: dict[str, Any], spawn: ModuleType) -> dict[str, Any]:
        return {_ENTRY: self._entry(spawn.get_executable()), **data}

    def _entry(self, executable: Any) -> _Begin:
        tell = executable not in self._told
        self._told.add(executable)
        fields = {
            "folder": os.path.dirname(os.path.abspath(samebits.__file__)),
            "control": self._carried().to_dict(),
            "unlisted": unlisted_folders(),
            "hidden": sys.modules.get("samebits") is not samebits,
            "tell": tell,
        }
        return _Begin(fields)

    def _carried(self) -> Control:
        """The control, with the run seed that holds now; the rank is part of that already."""
        return self._active.control._replace(
            seed=acting(self._active).seed, per_rank=False, scope=self._next_scope()
        )


def _without_main(data: dict[str, Any]) -> dict[str, Any]:
    # Newer Pythons let the server import the script (3.13.2, gh-126631). There would be no control, and the
    # children would not import it again.
    return {key: value for key, value in data.items() if key not in _MAIN_KEYS}


class _Begin:
    """Becomes None when it is unpickled, and begins control while it is."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (_BEGIN, dict(self._fields))


def begin_in_child(fields: dict[str, Any], unlisted: Sequence[str] = ()) -> None:
    """Begin control in a process that was started afresh; called before the script is imported there.

    Args:
        fields: what `Control.to_dict()` gave in the parent.
        unlisted: folders that are not listed there when modules are looked for.
    """
    for folder in unlisted:
        UnlistedFolder(folder).install()
    # That module imports this one.
    activations = import_module("samebits.determinism.activation")
    activation = activations.Activation(Control.from_dict(fields), fresh_process=False)
    activation.start()
    _BEGUN.append(activation)
