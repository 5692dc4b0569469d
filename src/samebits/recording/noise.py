"""Disturbing the order in which threads run, which a reproducible script does not notice."""

from __future__ import annotations

import _thread
import random
import sys
import time


class SchedulingNoise:
    """A thread that takes the interpreter lock at random moments, and random switch intervals.

    Args:
        seed: which disturbance; its own generator is used, not the script's.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._running = False
        self._interval_s = sys.getswitchinterval()

    def start(self) -> None:
        """Begin; `threading` does not list the thread, so the script does not see it."""
        self._running = True
        _thread.start_new_thread(self._disturb, ())

    def stop(self) -> None:
        """End, and restore the switch interval."""
        self._running = False
        sys.setswitchinterval(self._interval_s)

    def _disturb(self) -> None:
        draw = self._random
        while self._running:
            time.sleep(draw.uniform(0.0, 0.004))
            sys.setswitchinterval(draw.choice((1e-5, 1e-4, 5e-3)))
            end = time.perf_counter() + draw.uniform(0.0, 0.001)
            while time.perf_counter() < end:
                pass
