"""Control of the processes that a script starts, and a watch for the threads that it starts."""

from __future__ import annotations

import functools
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from samebits._runtime.address_layout import leave_working_folder, unlisted_folders
from samebits._runtime.child_bootstrap import CHILDREN, Payload, Phase
from samebits._runtime.frames import FrameRanks, Site, nearest_site
from samebits._runtime.imports import PostImport
from samebits._runtime.patching import Patches
from samebits.rng.active import acting, thread_name
from samebits.rng.seeds import fit

if TYPE_CHECKING:
    from samebits.rng.active import Active
    from samebits.switches.switch import Control


class ThreadWatch:
    """Notices the first thread that the script, or a library for it, starts in this process.

    With fixed addresses a process allocates the same in every run, unless several threads allocate at once.
    """

    def __init__(self) -> None:
        self.first: Site | None = None
        self._patches = Patches()

    def install(self) -> None:
        """Begin."""
        start = threading.Thread.start

        @functools.wraps(start)
        def noticed(thread: threading.Thread, *args: Any, **kwargs: Any) -> None:
            if self.first is None and not thread.name.startswith("samebits"):
                self.first = nearest_site(FrameRanks(), sys._getframe(1))
            start(thread, *args, **kwargs)

        self._patches.set(threading.Thread, "start", noticed)

    def remove(self) -> None:
        """Stop."""
        self._patches.restore()


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
        """Carry control into the processes that are started from now on."""
        for name in ("fork", "forkpty"):
            if hasattr(os, name):
                self._patch_fork(name)
        self._imports.install()
        CHILDREN.register(Phase.CONTROL, self._payload)
        self._imports.on_import(
            "multiprocessing.util", functools.partial(leave_working_folder, self._patches)
        )

    def remove(self) -> None:
        """Put everything back."""
        CHILDREN.unregister(Phase.CONTROL, self._payload)
        self._imports.remove()
        self._patches.restore()

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
        # After the functions registered with `os.register_at_fork`, the one of `random` among them.
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
        """Return the control with the present run seed, which already includes the rank."""
        return self._active.control._replace(
            seed=acting(self._active).seed, per_rank=False, scope=self._next_scope()
        )
