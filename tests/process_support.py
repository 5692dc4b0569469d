"""What tests ask of other processes."""

from __future__ import annotations

import signal
import time
from pathlib import Path


def is_in_state(pid: int, states: str) -> bool:
    """Whether a process gets into one of some states (see proc(5)) within some seconds."""
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            state = "X"
        if state in states:
            return True
        time.sleep(0.02)
    return False


def is_gone(pid: int) -> bool:
    """Whether a process ends within some seconds; of a zombie only its number is left."""
    return is_in_state(pid, "XZ")


def heed_signals() -> None:
    """In a child before it runs: ignore no signal that a shell has ignored for us, as `nohup` and `&` do."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
