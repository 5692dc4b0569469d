"""Ops of threads that the script starts."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, Protocol

from samebits.hooks.patching import Patches

if TYPE_CHECKING:
    from collections.abc import Callable


class Follower(Protocol):
    """**Protocol:** a probe that watches ops by thread."""

    def in_thread(self, function: Callable[[], Any]) -> Any:
        """Call a function of another thread with its ops watched."""


class ThreadProbe:
    """Has the ops of new threads recorded: torch keeps dispatch modes per thread.

    Args:
        ops: records them, or executes them again.
    """

    def __init__(self, ops: Follower) -> None:
        self._ops = ops
        self._patches = Patches()

    def install(self, torch: Any) -> None:  # noqa: ARG002 - all probes are installed alike
        """Watch threads that start from now on."""
        ops, start = self._ops, threading.Thread.start

        @functools.wraps(start)
        def followed_start(thread: threading.Thread) -> None:
            run, own = thread.run, "run" in vars(thread)

            def restore() -> None:
                vars(thread).pop("run", None)
                if own:
                    thread.run = run  # type: ignore[method-assign]

            def followed_run() -> None:
                restore()
                ops.in_thread(run)

            # On the instance: a subclass may have a `run` of its own.
            thread.run = followed_run  # type: ignore[method-assign]
            try:
                start(thread)
            except BaseException:  # it runs already, or no thread can be made
                restore()
                raise

        self._patches.set(threading.Thread, "start", followed_start)

    def remove(self) -> None:
        """Watch no new threads."""
        self._patches.restore()
