"""Children that end when this process does, however it ends: Linux's `PR_SET_PDEATHSIG` (prctl(2)).

The kernel kills such a child when the thread that started it ends. The child's own children are not affected,
and the request survives `exec`. Other systems have nothing like it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SET_PARENT_DEATH_SIGNAL = 1  # <linux/prctl.h>


def ended_with_parent() -> Callable[[], None] | None:
    """What `preexec_fn` of `subprocess.Popen` must be for a child that is killed when this process ends.

    Returns:
        None where the system has no such thing.
    """
    if not sys.platform.startswith("linux"):
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def ask() -> None:
        prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the request was made
            os._exit(128 + signal.SIGKILL)

    return ask
