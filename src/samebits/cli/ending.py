"""End a command on a signal: within two seconds, with what is known so far."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from samebits._runtime.processes import descendants, end
from samebits.recording.supervision import ENDING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

# With the grace of a child (`CHILD_GRACE_S`) less than two seconds.
_DEADLINE_S = 1.2


class Ended(KeyboardInterrupt):
    """A signal told this program to end; it does so as after Ctrl-C."""


class Ending:
    """A handler of the signals that tell this program to end: SIGTERM, SIGHUP and others.

    The first signal is raised as `Ended`. The program ends a second later even if it has not finished, and at
    once on a second signal. Signals that are ignored, or have a handler already, are left alone.

    Args:
        own_process: whether the process ends with the command.

    Attributes:
        number: the signal that came; SIGINT until then.
        keeps: whether the command has recorded something by then.
    """

    def __init__(self, *, own_process: bool) -> None:
        self.number: int = signal.SIGINT
        self.keeps = False
        self._own_process = own_process
        self._over = False
        self._saved: dict[int, Any] = {}

    def __enter__(self) -> Ending:  # noqa: PYI034 - Self needs Python 3.11
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                if signal.getsignal(number) == signal.SIG_DFL:
                    self._saved[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        self._over = not self._own_process
        for number, handler in self._saved.items():
            signal.signal(number, handler)

    @property
    def words(self) -> str:
        """The reason why the program ended."""
        name = signal.Signals(self.number).name
        return "interrupted" if self.number == signal.SIGINT else f"ended by {name}"

    @property
    def status(self) -> int:
        """The exit status that says so, as of a program that dies by the signal."""
        return 128 + self.number

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self.number != signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.number = number
        # Not by `threading.Timer`: the thread that this interrupts may hold a lock that it takes.
        _thread.start_new_thread(self._end_late, ())
        raise Ended

    def _end_late(self) -> None:
        """End the program and its children even if it has not finished; the output so far is written."""
        time.sleep(_DEADLINE_S)
        if self._over:
            return
        with suppress(Exception):
            sys.stdout.flush()
            os.write(2, f"samebits: {self.words}\n".encode())
        with suppress(Exception):
            end(descendants(os.getpid()), 0)
        os._exit(self.status)


@contextmanager
def held_back() -> Iterator[None]:
    """Delay signals that tell this program to end until a result is printed."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*ENDING, signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
