"""Control reaches the processes that a script starts through `multiprocessing`, loky or `os.fork`.

A forked process inherits everything; it gets a scope of its own, so that generators made there without a seed
have keys of their own. NumPy's and torch's global generators go on from the inherited state, as without
control; Python's `random`, which reseeds itself from the system's entropy in every forked child
(Lib/random.py, `register_at_fork`), is seeded by key instead.

A spawned process, or one from the fork server, begins control before it imports the script (see
`hooks.child_bootstrap`). A child that cannot import samebits runs on without control, and says so.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING, Any

from samebits.determinism.process import acting, thread_name
from samebits.determinism.seeds import fit
from samebits.hooks.child_bootstrap import CHILDREN, Payload, Phase
from samebits.hooks.imports import PostImport
from samebits.hooks.patching import Patches
from samebits.hooks.unlisted import leave_working_folder, unlisted_folders

if TYPE_CHECKING:
    from types import ModuleType

    from samebits.determinism.control import Control
    from samebits.determinism.process import Active

_WARNING = "no control in child processes"


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
        CHILDREN.register(Phase.CONTROL, self._payload)
        self._imports.on_import("multiprocessing.util", self._patch_util)

    def remove(self) -> None:
        """Put everything back."""
        CHILDREN.unregister(Phase.CONTROL, self._payload)
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

    def _payload(self, executable: Any) -> Payload:
        tell = executable not in self._told
        self._told.add(executable)
        arguments = {"control": self._carried().to_dict(), "unlisted": unlisted_folders()}
        return Payload(
            "samebits.determinism.activation",
            "begin_in_child",
            arguments,
            warning=_WARNING if tell else "",
            shown=True,
        )

    def _carried(self) -> Control:
        """The control, with the run seed that holds now; the rank is part of that already."""
        return self._active.control._replace(
            seed=acting(self._active).seed, per_rank=False, scope=self._next_scope()
        )
