"""Ops of threads that the script starts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

from samebits.hooks.patching import Patches
from samebits.hooks.thread_starts import start_within

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
        started = start_within(threading.Thread.start, self._ops.in_thread)
        self._patches.set(threading.Thread, "start", started)

    def remove(self) -> None:
        """Watch no new threads."""
        self._patches.restore()
