"""Handling of signals while children run, and of the processes that children leave behind.

A signal that this process ignores, or that nobody in Python set, stays as it is: the child inherits that.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from samebits._runtime.processes import KILL, Process, children, descendants, end

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from types import FrameType

_ENDING = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGXCPU", "SIGBREAK")
_STOPPING = ("SIGTSTP", "SIGTTIN", "SIGTTOU")
# Not for others: what cannot be caught, what tells of our own children, and faults of this process.
_FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGSYS")
_OWN = ("SIGKILL", "SIGSTOP", "SIGCHLD", *_FAULTS)
_SAME_KEYPRESS_SECONDS = 0.5
CHILD_GRACE_S = 0.7
_INTERRUPT_GRACE_S = 2.0  # a script may save what it has when somebody presses Ctrl-C
_ORPHANS_GRACE_S = 0.2
_SET_SUBREAPER, _GET_SUBREAPER = 36, 37  # of prctl(2), linux/prctl.h
_END_BY_THEMSELVES_S = 1.0  # a checkpoint that is being written, a tracker of shared memory
_WAIT_S = 0.05


def _numbers(names: tuple[str, ...]) -> frozenset[int]:
    """Return the numbers of those named signals that this system has."""
    return frozenset(int(getattr(signal, name)) for name in names if hasattr(signal, name))


ENDING = _numbers(_ENDING)
"""Signals that ask a program to end."""


class Supervision:
    """Passes signals to this process on to its children while they run.

    Ctrl-C reaches a child from the terminal; a second one kills it, and where there is a grace it has two
    seconds. A signal that asks to end is passed on; with a grace the children, and what they have started,
    are killed when that is over, and a second such signal kills all at once. What stops this process (Ctrl-Z)
    stops the children, and all go on together.

    Args:
        grace_s: seconds that children have to end once this process is told to; None for as long as it takes.

    Attributes:
        told: the signal that told this process to end; None when there was none.
    """

    def __init__(self, grace_s: float | None = None) -> None:
        self.told: int | None = None
        self._grace_s = grace_s
        self._children: list[subprocess.Popen[bytes]] = []
        self._passed: list[int] = []
        self._below: list[Process] = []
        self._first_interrupt = 0.0
        self._saved: dict[int, Any] = {}

    def __enter__(self) -> Supervision:  # noqa: PYI034 - Self needs Python 3.11
        if threading.current_thread() is threading.main_thread():
            for number in sorted(signal.valid_signals() - _numbers(_OWN)):
                # Ignored signals (nohup, a background job) stay ignored; the child inherits that, as bare
                # Python does. Handlers are not inherited, so the child starts with the defaults.
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._saved[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._saved.items():
            signal.signal(number, handler)

    def begin(self, child: subprocess.Popen[bytes]) -> None:
        """Pass on to this child what came and what will come."""
        self._children.append(child)
        for number in self._passed:
            child.send_signal(number)

    def finish(self) -> None:
        """End what the children had started, if this process was told to end; all children have ended."""
        if self.told is not None and self._grace_s is not None:
            end(self._below, _ORPHANS_GRACE_S)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            self._interrupt()
        elif number in ENDING and self._grace_s is not None:
            self._end(number)
        elif number in _numbers(_STOPPING):
            self._stop(number)
        else:
            self._pass_on(number)

    def _interrupt(self) -> None:
        now = time.monotonic()
        self.told = self.told or int(signal.SIGINT)
        if not self._first_interrupt:
            self._first_interrupt = now
            if not _in_foreground():  # else the terminal has sent it to the child too
                self._pass_on(signal.SIGINT)
            if self._grace_s is not None:
                self._below = self._started_below()
                self._kill_after(_INTERRUPT_GRACE_S)
        elif now - self._first_interrupt > _SAME_KEYPRESS_SECONDS:
            self._kill()

    def _end(self, number: int) -> None:
        if self.told in ENDING:
            self._kill()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.told = number
        self._below = self._started_below()
        self._pass_on(number)
        self._kill_after(self._grace_s or 0.0)

    def _kill_after(self, seconds: float) -> None:
        # Not by `threading.Timer`: this is a signal handler, and the thread that it interrupted may hold the
        # lock that starting a thread needs.
        _thread.start_new_thread(self._kill_later, (seconds,))

    def _kill_later(self, seconds: float) -> None:
        time.sleep(seconds)
        self._below += self._started_below()
        self._kill()

    def _started_below(self) -> list[Process]:
        """Return the processes that the running children have started."""
        return [
            process
            for child in self._children
            if child.returncode is None
            for process in descendants(child.pid)
        ]

    def _kill(self) -> None:
        for child in self._children:
            child.kill()

    def _stop(self, number: int) -> None:
        self._pass_on(number)
        # By the default action, which the kernel leaves out where nobody could continue this process.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, self._receive)

    def _pass_on(self, number: int) -> None:
        self._passed.append(number)  # for those that are still to be started
        for child in self._children:
            child.send_signal(number)


def _in_foreground() -> bool:
    """Tell whether this process belongs to the group that a terminal sends Ctrl-C to."""
    if sys.platform == "win32":  # a console sends it to all of its processes
        return True
    try:
        terminal = os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


@contextmanager
def ended_orphans() -> Iterator[None]:
    """End what the processes that are started in the block leave behind, after a second of grace.

    They would write into the folder of the next run. An exception in the block, or in that second, ends the
    grace: it comes from a signal that asks to end.

    On Linux this process becomes the parent of their orphans for as long as the block lasts
    (`PR_SET_CHILD_SUBREAPER`). Elsewhere nothing is done.
    """
    if not sys.platform.startswith("linux"):
        yield
        return
    libc = ctypes.CDLL(None)
    before = ctypes.c_int()
    libc.prctl(_GET_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    others = set(children())
    libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
        for number in (None, signal.SIGTERM, KILL):
            if _are_gone(others, number):
                break
    except BaseException:
        _are_gone(others, KILL)
        raise
    finally:
        libc.prctl(_SET_SUBREAPER, before.value, 0, 0, 0)


def _are_gone(others: set[Process], number: int | None) -> bool:
    """Send a signal to all children except some, and wait; the children of those that end become ours too."""
    if sys.platform == "win32":
        return True
    signalled: set[Process] = set()
    until = time.monotonic() + _END_BY_THEMSELVES_S
    while orphans := set(children()) - others:
        for process in orphans:
            with suppress(OSError):  # it has ended
                if number is not None and process not in signalled:
                    os.kill(process.number, number)
                os.waitpid(process.number, os.WNOHANG)
        signalled |= orphans
        if time.monotonic() > until:
            return not (set(children()) - others)
        time.sleep(_WAIT_S)
    return True
