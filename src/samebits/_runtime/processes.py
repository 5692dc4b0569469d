"""Processes and threads that a process starts: forks, children that end with it, calls around threads."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import sys
import time
import weakref
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable

    Run = Callable[[], Any]

_PARENT, _START_TIME = 1, 19  # fields after the name in /proc/PID/stat, see proc(5)
_WAIT_S = 0.02
# They free the shared memory of those that they serve, and end by themselves once nobody is left to serve.
_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "torch_shm_manager")


class Process(NamedTuple):
    """One process: its number, and when it started, because numbers are reused."""

    number: int
    started: str


def children(parent: int | None = None) -> list[Process]:
    """Return the children of a process, by default of this one; empty where there is no /proc."""
    return _by_parent()[os.getpid() if parent is None else parent]


def descendants(ancestor: int) -> list[Process]:
    """Return the children of a process, their children and so on; empty where there is no /proc."""
    table = _by_parent()
    below: list[Process] = []
    waiting = [ancestor]
    while waiting:
        started = table.pop(waiting.pop(), [])
        below += started
        waiting += [process.number for process in started]
    return below


if sys.platform == "win32":
    KILL = signal.SIGTERM  # `os.kill` ends a process at once with it
else:
    KILL = signal.SIGKILL
KILLED = 128 + KILL
"""The exit status of a process that was killed."""


def end(processes: Iterable[Process], grace_s: float) -> None:
    """End processes: by SIGTERM, and by SIGKILL if they still run after a time.

    Those that serve others (multiprocessing's resource tracker) are left to end by themselves.

    Args:
        processes: those that `descendants` returned.
        grace_s: seconds that they have for ending; 0 kills them at once.
    """
    left = [process for process in processes if not _serves(process)]
    if grace_s:
        _signal(left, signal.SIGTERM)
        until = time.monotonic() + grace_s
        while any(map(_is_alive, left)) and time.monotonic() < until:
            time.sleep(_WAIT_S)
    _signal(left, KILL)


def _signal(processes: Iterable[Process], number: int) -> None:
    for process in processes:
        if _is_alive(process):
            with suppress(OSError):  # it has ended
                os.kill(process.number, number)


def _is_alive(process: Process) -> bool:
    fields = _fields(process.number)
    return len(fields) > _START_TIME and fields[_START_TIME] == process.started and fields[0] not in "ZX"


def _serves(process: Process) -> bool:
    try:
        command = Path(f"/proc/{process.number}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return False
    return any(helper in command for helper in _HELPERS)


def _by_parent() -> defaultdict[int, list[Process]]:
    by_parent: defaultdict[int, list[Process]] = defaultdict(list)
    with suppress(OSError):  # not Linux
        for name in os.listdir("/proc"):
            if name.isdigit():
                fields = _fields(int(name))
                if len(fields) > _START_TIME:
                    by_parent[int(fields[_PARENT])].append(Process(int(name), fields[_START_TIME]))
    return by_parent


def _fields(number: int) -> list[str]:
    """Read the fields after the name of a process, which may hold anything; empty if the process ended."""
    try:
        text = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def at_fork(*, before: Callable[[], None] | None = None, in_child: Callable[[], None] | None = None) -> None:
    """Call methods at every fork for as long as their objects live.

    Args:
        before: bound method, called in the parent before it forks.
        in_child: bound method, called in the child.
    """
    if sys.platform == "win32":  # no process forks there
        return
    if before is not None:
        os.register_at_fork(before=_weakly(before))
    if in_child is not None:
        os.register_at_fork(after_in_child=_weakly(in_child))


def _weakly(method: Callable[[], None]) -> Callable[[], None]:
    held = weakref.WeakMethod(method)

    def call() -> None:
        living = held()
        if living is not None:
            living()

    return call


_SET_PARENT_DEATH_SIGNAL = 1  # <linux/prctl.h>


def ended_with_parent() -> Callable[[], None] | None:
    """Return a `preexec_fn` for `subprocess.Popen` that has the child killed when this process ends.

    Returns:
        None where the system cannot do that.
    """
    if not sys.platform.startswith("linux"):
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def ask() -> None:
        prctl(_SET_PARENT_DEATH_SIGNAL, KILL, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the request was made
            os._exit(KILLED)

    return ask


def start_within(start: Callable[..., Any], around: Callable[[Run], Any]) -> Callable[..., Any]:
    """Return a `threading.Thread.start` that has `around` call each thread's `run`, in the new thread.

    Args:
        start: the present `Thread.start`.
        around: takes the thread's `run`.
    """

    @functools.wraps(start)
    def started(thread: threading.Thread) -> None:
        run, own = thread.run, "run" in vars(thread)

        def restore() -> None:
            vars(thread).pop("run", None)
            if own:
                thread.run = run  # type: ignore[method-assign]

        def run_within() -> None:
            restore()
            around(run)

        # On the instance: a subclass may have its own `run`.
        thread.run = run_within  # type: ignore[method-assign]
        try:
            start(thread)
        except BaseException:  # it runs already, or no thread can be made
            restore()
            raise

    return started
