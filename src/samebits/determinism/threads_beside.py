"""Threads that run beside the main thread: they allocate when they are scheduled."""

from __future__ import annotations

import functools
import sys
import threading
from typing import Any

from samebits.hooks.frames import FrameRanks, Site, nearest_site
from samebits.hooks.patching import Patches


class ThreadsBeside:
    """Notices the first thread that the script, or a library for it, starts in this process.

    With fixed addresses a process allocates the same in every run, unless threads allocate beside each other.
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
