"""Timers of the process (`signal.setitimer`, `signal.alarm`) that follow the virtual clock."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from samebits.determinism.pins.tools import PinTools

_SIGNALS = {"ITIMER_REAL": "SIGALRM", "ITIMER_VIRTUAL": "SIGVTALRM", "ITIMER_PROF": "SIGPROF"}


class Elapsing(Protocol):
    """**Protocol:** a clock."""

    elapsed: int


class VirtualTimers:
    """Signals that come when the virtual clock says so: at a reading, a sleep, or a wait for one.

    Args:
        clock: the clock of each thread.
    """

    def __init__(self, clock: Elapsing) -> None:
        self._clock = clock
        self._due: dict[int, tuple[int, int]] = {}  # timer -> (when, interval), in nanoseconds

    def install(self, tools: PinTools, rule: Any) -> None:
        """Begin."""
        if not hasattr(signal, "setitimer"):
            return
        tools.replace(signal, "setitimer", lambda _, which, *times: self._set(which, *times), rule)
        tools.replace(signal, "getitimer", lambda _, which: self._left(which), rule)
        tools.replace(signal, "alarm", lambda _, seconds: self._alarm(seconds), rule)
        tools.replace(signal, "pause", self._pause, rule)

    def look(self) -> None:
        """Send the signals that are due."""
        for which, (when, interval) in tuple(self._due.items()):
            if when <= self._clock.elapsed:
                if interval:
                    self._due[which] = (self._clock.elapsed + interval, interval)
                else:
                    del self._due[which]
                signal.raise_signal(_signal_of(which))

    def _set(self, which: int, seconds: float, interval: float = 0.0) -> tuple[float, float]:
        _signal_of(which)
        before = self._left(which)
        self._due.pop(which, None)
        if seconds:
            self._due[which] = (self._clock.elapsed + int(seconds * 1e9), int(interval * 1e9))
        return before

    def _left(self, which: int) -> tuple[float, float]:
        if which not in self._due:
            return 0.0, 0.0
        when, interval = self._due[which]
        return max(1, when - self._clock.elapsed) / 1e9, interval / 1e9

    def _alarm(self, seconds: int) -> int:
        before, _ = self._set(signal.ITIMER_REAL, seconds)
        return -int(-before // 1)

    def _pause(self, function: Any) -> Any:
        """Time goes on to the first timer; without one the script waits for a signal from outside."""
        if not self._due:
            return function()
        self._clock.elapsed = max(self._clock.elapsed, min(when for when, _ in self._due.values()))
        return self.look()


def _signal_of(which: int) -> Any:
    for timer, name in _SIGNALS.items():
        if which == getattr(signal, timer):
            return getattr(signal, name)
    raise signal.ItimerError(22, "Invalid argument")
