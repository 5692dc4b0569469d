"""Ending this process where it is, without going back to the script.

A run that has shown enough (`--steps N`, the first difference) must not be ended by an exception: the
script's own `except`, `finally` and `with` would take it for a failure, and libraries would report one. The
work of the interpreter at its end is therefore done here, in the middle of the script: buffers are written,
the `atexit` functions run (temporary folders are deleted, services are closed), and processes that the script
started are ended. Its frames never run again, and what it would still print is not shown.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import ctypes
import gc
import io
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from samebits._runtime.processes import descendants, end

if TYPE_CHECKING:
    from collections.abc import Callable

_GRACE_S = 5.0
_POLL_S = 0.25
_WORK_S = 0.001  # of processor time in that time: less is no work, but the polling itself
_MOST_S = 120.0
_CHILDREN_GRACE_S = 0.5


def leave(status: int, exit_now: Callable[[int], None]) -> None:
    """End this process; called in any thread.

    Args:
        status: its exit status.
        exit_now: `os._exit`.
    """
    end_after_grace(status, exit_now)
    _flush_files()
    _silence()
    _end_multiprocessing()
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    _flush_files()
    with contextlib.suppress(BaseException):
        end(descendants(os.getpid()), _CHILDREN_GRACE_S)
    exit_now(status)


def end_after_grace(status: int, exit_now: Callable[[int], None]) -> None:
    """End this process in five seconds, whatever still runs: something that is waited for may never come."""
    _end_after(lambda: time.sleep(_GRACE_S), status, exit_now)


def end_when_stuck(status: int, exit_now: Callable[[int], None]) -> None:
    """End this process when it has done nothing for five seconds, or after two minutes.

    Closing a record may wait for what an interrupted thread holds, for ever. It may also just be slow, on a
    busy machine or with thousands of packages: then it must come to its end.
    """
    _end_after(_wait_until_stuck, status, exit_now)


def _wait_until_stuck() -> None:
    used, idle_s = time.process_time(), 0.0
    for _ in range(round(_MOST_S / _POLL_S)):
        time.sleep(_POLL_S)
        before, used = used, time.process_time()
        idle_s = idle_s + _POLL_S if used - before < _WORK_S else 0.0
        if idle_s >= _GRACE_S:
            return


def _end_after(wait: Callable[[], None], status: int, exit_now: Callable[[int], None]) -> None:
    def wait_and_end() -> None:
        wait()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        exit_now(status)

    # Not `threading.Thread`, which the interpreter waits for or the script sees.
    _thread.start_new_thread(wait_and_end, ())


def _flush_files() -> None:
    """Write what is in the buffers of files that are open, in Python and in C."""
    for obj in gc.get_objects():
        if issubclass(type(obj), (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)):
            with contextlib.suppress(Exception):  # closed, or its file is full
                obj.flush()
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).fflush(None)


def _silence() -> None:
    """Send what is printed from now on nowhere: it is no longer the script's output."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number in (1, 2):
            with contextlib.suppress(OSError):
                os.fstat(number)  # closed ones stay closed
                os.dup2(nowhere, number)


def _end_multiprocessing() -> None:
    """End the processes that `multiprocessing` would wait for."""
    with contextlib.suppress(Exception):
        # The handler of torch's loaders would raise in the main thread when a worker ends. By C, because
        # `signal.signal` works in that thread only.
        if sys.platform != "win32":
            ctypes.CDLL(None).signal(signal.SIGCHLD, 0)
    processes = sys.modules.get("multiprocessing.process")
    with contextlib.suppress(Exception):
        for child in processes.active_children() if processes else ():
            child.terminate()
