"""Portable mode for a whole process, its threads and the processes that it starts."""

from __future__ import annotations

import atexit
import functools
import importlib
import sys
import threading
from typing import TYPE_CHECKING, Any

from samebits._runtime.child_bootstrap import CHILDREN, Payload, Phase
from samebits._runtime.imports import PostImport
from samebits._runtime.patching import PATCHED, Patches
from samebits.portable import NUMERICS_VERSION
from samebits.portable.ways import Way

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


class PortableRun:
    """Portable mode of a whole process, entered when torch is imported.

    A forked process inherits it with the thread that forks. One that is started afresh through
    `multiprocessing` (spawn, forkserver) or loky enters it before it imports the script.
    """

    def __init__(self) -> None:
        self._imports = PostImport()
        self._patches = Patches()
        self._activation: Any = None

    def start(self) -> None:
        """Wait for torch, and follow new threads and processes. Imports nothing heavy."""
        self._imports.on_torch(self._enter)
        CHILDREN.register(Phase.PORTABLE, _payload)
        self._patches.set(threading.Thread, "start", _after_torch(threading.Thread.start))
        self._imports.install()

    def stop(self) -> None:
        """Leave portable mode. Does nothing when it was not entered."""
        CHILDREN.unregister(Phase.PORTABLE, _payload)
        self._imports.remove()
        if self._activation is not None:  # first, for its patches were made after ours
            self._activation.stop()
            self._activation = None
        self._patches.restore()

    def facts(self) -> dict[str, Any]:
        """Return the facts for the record: the version of the numerics, and what computed by them.

        That is the kernels in use, and the way in which ops come to them; neither changes bits. Both are None
        where portable mode was never entered: nothing was computed, and to ask would import torch, which
        cannot be imported while the interpreter ends.
        """
        entered = self._activation is not None
        kernels, way = (_kernels_in_use(), _way_in_use()) if entered else (None, None)
        return {"numerics": NUMERICS_VERSION, "kernels": kernels, "dispatch": way}

    def _enter(self, _torch: ModuleType) -> None:
        from samebits.portable.activation import PortableActivation

        activation = PortableActivation()
        activation.start()
        self._activation = activation


def _kernels_in_use() -> str:
    from samebits.portable.backends import cpu_backend

    return cpu_backend().name


def _way_in_use() -> str:
    from samebits.portable._dispatch import uses_registration

    return str(Way.REGISTRATION if uses_registration() else Way.MODE)


def _after_torch(start: Callable[..., Any]) -> Callable[..., Any]:
    """Return `Thread.start` that imports torch first, in the thread that calls it.

    Modes are of one thread: one that runs before torch is imported would not be in portable mode, nor would
    the main thread if another one imports torch.
    """

    @functools.wraps(start)
    def start_after_torch(thread: threading.Thread) -> None:
        if "torch" in sys.modules:
            start(thread)
            return
        try:
            importlib.import_module("torch")
        except ImportError:
            start(thread)
        else:
            threading.Thread.start(thread)  # as portable mode has patched it meanwhile

    return start_after_torch


def _payload(_executable: Any) -> Payload:
    # Where it fails the child ends: it would give other bits.
    return Payload("samebits.portable.run", "begin_in_child", {}, needed=True, shown=True)


def begin_in_child() -> PortableRun:
    """Enter portable mode in a process that was started afresh."""
    run = PortableRun()
    run.start()
    atexit.register(run.stop)  # while torch is still there
    atexit.register(PATCHED.process_ends)  # which comes before
    return run
