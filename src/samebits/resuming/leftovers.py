"""Ends the processes that a run leaves behind: they would write into the folder of the next one."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SET_SUBREAPER, _GET_SUBREAPER = 36, 37  # of prctl(2), linux/prctl.h
_GRACE_S = 1.0  # for what ends by itself: a checkpoint that is being written, a tracker of shared memory
_WAIT_S = 0.05


@contextmanager
def ended_leftovers() -> Iterator[None]:
    """End what the processes that are started in the block leave behind, after a second of grace.

    What is raised in the block, or in that second, leaves no grace: it is a signal that asks for the end.

    On Linux: this process is made the parent of their orphans while it lasts (`PR_SET_CHILD_SUBREAPER`).
    Elsewhere nothing is done.
    """
    if not sys.platform.startswith("linux"):
        yield
        return
    libc = ctypes.CDLL(None)
    before = ctypes.c_int()
    libc.prctl(_GET_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    others = _children()
    libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if _are_gone(others, number):
                break
    except BaseException:
        _are_gone(others, signal.SIGKILL)
        raise
    finally:
        libc.prctl(_SET_SUBREAPER, before.value, 0, 0, 0)


def _are_gone(others: set[int], number: int | None) -> bool:
    """Send a signal to all children but some, and wait; children of what ends become children too."""
    signalled: set[int] = set()
    until = time.monotonic() + _GRACE_S
    while found := _children() - others:
        for process in found:
            with suppress(OSError):  # it has ended
                if number is not None and process not in signalled:
                    os.kill(process, number)
                os.waitpid(process, os.WNOHANG)
        signalled |= found
        if time.monotonic() > until:
            return not (_children() - others)
        time.sleep(_WAIT_S)
    return True


def _children() -> set[int]:
    """The children of this process."""
    own, found = str(os.getpid()), set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it has ended
                # pid (name) state parent ...; the name may hold anything
                if (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1] == own:
                    found.add(int(folder.name))
    return found
