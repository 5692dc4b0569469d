"""The pin `serial-processes`: of the processes that the script starts one runs at a time.

A start returns when the process has ended. One that waits, for a queue, a lock or a process that is started
later, is passed over: it sleeps and uses no processor. One that runs longer than `LIMIT_S` is, too.
"""

from __future__ import annotations

import functools
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from samebits.hooks.frames import calling_frame

if TYPE_CHECKING:
    from types import FrameType

    from samebits.determinism.pins.tools import PinTools

LIMIT_S = 60.0
_POLL_S = 0.02
_BLOCKED_S = 1.0
_STARTS_FOR_THE_SCRIPT = "torch.multiprocessing.spawn"
_WAITING = (b"S", b"D")


def pin_processes_in_turn(tools: PinTools) -> None:
    """Run the script's processes one at a time."""
    tools.imports.on_import("multiprocessing.process", lambda module: _follow_starts(tools, module))


def _follow_starts(tools: PinTools, module: Any) -> None:
    original = module.BaseProcess.start

    @functools.wraps(original)
    def start(self: Any) -> None:
        original(self)
        frame = calling_frame()
        if tools.asker.is_direct(frame) or _is_spawned(frame):
            _await(self)

    tools.patches.set(module.BaseProcess, "start", start)


def _is_spawned(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == _STARTS_FOR_THE_SCRIPT


def _await(process: Any) -> None:
    """Wait until it ends or is seen to wait itself."""
    end, used, since = monotonic() + LIMIT_S, b"", monotonic()
    while process.exitcode is None and monotonic() < end:
        state, now = _activity(process.pid)
        if state not in _WAITING or now != used:
            used, since = now, monotonic()
        elif monotonic() - since > _BLOCKED_S:
            return
        sleep(_POLL_S)


def _activity(pid: int) -> tuple[bytes, bytes]:
    """Whether a process runs or sleeps, and the processor time that it has used."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return fields[0], b" ".join(fields[11:13])
    except (OSError, IndexError):
        return b"S", b""
