"""Signals in the process of a script while samebits works there: before the script begins, and after it.

Where a signal's handler raises, the code that it interrupts is left. In code of samebits that would be a
record that nobody closes, and a traceback that does not concern the user. So SIGINT ends the process at once,
in the way of programs without a handler, until the script begins (`BOOTSTRAP` in `launch` sees to it). After
the script, handlers are kept from interrupting samebits: what comes is delivered when the record is closed.
The handlers of the script itself still run in the script's own code: in its `atexit` functions, and while the
interpreter waits for its threads.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` has wrappers, in which a signal would raise
import contextlib
import os
import sys
import threading
from _thread import get_ident
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line

if TYPE_CHECKING:
    from types import FrameType

DEFAULT_FIRST = """\
import _signal
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
"""
"""Source that a child of samebits begins with: until `RunSignals.begin` SIGINT ends it at once."""

_SIGINT = int(_signal.SIGINT)
_kill, _getpid = os.kill, os.getpid  # the script's may be others by the end


class RunSignals:
    """The handlers of a script's process.

    Args:
        everywhere: keep signals back also while the interpreter is in code that samebits did not call.

    Attributes:
        came: numbers of the signals that were kept back, in their order.
    """

    def __init__(self, *, everywhere: bool = False) -> None:
        self._everywhere = everywhere
        self.came: list[int] = []
        self._saved: dict[int, Any] = {}
        self._main = threading.main_thread().ident  # other threads may set no handler

    def begin(self) -> None:
        """Have SIGINT raise `KeyboardInterrupt`, as bare Python has at the start of a script."""
        if self._in_main_thread() and _signal.getsignal(_SIGINT) == _signal.SIG_DFL:
            _signal.signal(_SIGINT, _signal.default_int_handler)

    def hold(self) -> None:
        """Keep signals that have a handler in Python from interrupting samebits; in the main thread only."""
        if not self._in_main_thread():
            return
        for number in (_SIGINT, *sorted(map(int, _signal.valid_signals()))):
            handler = _signal.getsignal(number)
            if callable(handler) and getattr(handler, "__self__", None) is not self:
                self._saved[number] = handler
                _signal.signal(number, self._receive)

    def release(self) -> None:
        """Give the script its handlers back, for code of its own that samebits calls."""
        if self._in_main_thread():
            while self._saved:
                _signal.signal(*self._saved.popitem())

    def deliver(self) -> None:
        """Do what the signals that came ask for, once the record is closed; may end the process.

        SIGINT ends it at once from now on, unless the script has a handler for it.
        """
        if not self._in_main_thread():
            return
        saved = dict(self._saved)
        if saved.get(_SIGINT) is _signal.default_int_handler:
            _signal.signal(_SIGINT, _signal.SIG_DFL)
            del self._saved[_SIGINT]
        self.release()
        for number in self.came:
            if (
                number == _SIGINT
                and number not in self._saved
                and _signal.getsignal(number) == _signal.SIG_DFL
            ):
                _end_by_interrupt()
            with contextlib.suppress(BaseException):  # there is nobody left whom it could interrupt
                saved[number](number, sys._getframe())

    def skip_begins(self) -> int:
        """Return what `skip_ends` needs."""
        return len(self.came)

    def skip_ends(self, begun: int) -> None:
        """Forget each Ctrl-C since then: it was meant for what was skipped."""
        self.came[begun:] = [number for number in self.came[begun:] if number != _SIGINT]

    def _in_main_thread(self) -> bool:
        return get_ident() == self._main

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._everywhere or _is_samebits_at_work(frame):
            self.came.append(int(number))
            return
        try:
            self._saved[number](number, frame)
        except BaseException as error:
            leave_no_line(error)
            raise


def _is_samebits_at_work(frame: FrameType | None) -> bool:
    """Tell whether what is interrupted was called by samebits, not by the interpreter."""
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
    if frame is None:
        return False
    return "startup_modules" in frame.f_globals or _is_own(frame)


def _is_own(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "samebits"


def _end_by_interrupt() -> None:
    """End this process as the interpreter ends it after an uncaught `KeyboardInterrupt`."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    _kill(_getpid(), _SIGINT)
