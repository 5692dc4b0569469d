"""Ops of threads that the script starts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from samebits.recording.patching import Patches

if TYPE_CHECKING:
    from samebits.recording.probes.ops import OpProbe


class ThreadProbe:
    """Has the ops of new threads recorded: torch keeps dispatch modes per thread.

    Args:
        ops: records them.
    """

    def __init__(self, ops: OpProbe) -> None:
        self._ops = ops
        self._patches = Patches()

    def install(self, torch: Any) -> None:  # noqa: ARG002 - all probes are installed alike
        """Watch threads that start from now on."""
        ops, start = self._ops, threading.Thread.start

        def followed_start(thread: threading.Thread) -> None:
            run = thread.run

            def followed_run() -> None:
                try:
                    ops.in_thread(run)
                finally:
                    vars(thread).pop("run", None)

            # On the instance: a subclass may have a `run` of its own.
            thread.run = followed_run  # type: ignore[method-assign]
            start(thread)

        self._patches.set(threading.Thread, "start", followed_start)

    def remove(self) -> None:
        """Watch no new threads."""
        self._patches.restore()
