"""Pins for what a process is called: its number, its threads', its machine, its ports."""

from __future__ import annotations

import functools
import os
import threading
from typing import TYPE_CHECKING, Any

from samebits.determinism.pins.tools import number_for
from samebits.determinism.process import thread_name
from samebits.hooks.frames import calling_frame

if TYPE_CHECKING:
    from samebits.determinism.pins.tools import PinTools

# Above the highest number that Linux gives (2**22): a signal that is sent there reaches nobody.
_ABOVE_PIDS = 5_000_000
_HOST = "pinned-host"
_NODE = 0x0200_0000_5EED
_FIRST_PORT, _PORTS = 23_456, 2_000
_OWN, _PARENT = "process", "parent"


def pin_process(tools: PinTools) -> None:
    """Fix the numbers of processes and threads and the name of the host, for the user's own code.

    Functions that take such a number get the real one.
    """
    rule = tools.asker.is_user
    getpid, getppid = os.getpid, os.getppid
    tools.replace(os, "getpid", lambda _: _pid(_OWN), rule)
    tools.replace(os, "getppid", lambda _: _pid(_PARENT), rule)

    def real(number: Any) -> Any:
        if number == _pid(_OWN):
            return getpid()
        return getppid() if number == _pid(_PARENT) else number

    def with_real(function: Any, number: Any, *args: Any, **kwargs: Any) -> Any:
        return function(real(number), *args, **kwargs)

    for name in ("kill", "getpgid", "getsid", "sched_getaffinity", "sched_setaffinity", "pidfd_open"):
        tools.replace(os, name, with_real, rule)
    for name in ("get_ident", "get_native_id"):
        tools.replace(threading, name, lambda _: 1 + number_for("thread", thread_name()) % 2**31, rule)
    _pin_names(tools, rule)
    tools.imports.on_import("psutil", lambda psutil: _pin_psutil(tools, psutil, real))


def _pid(of: str) -> int:
    return _ABOVE_PIDS + number_for(of) % 1_000_000


def _pin_names(tools: PinTools, rule: Any) -> None:
    tools.imports.on_import(
        "socket", lambda module: tools.replace(module, "gethostname", lambda _: _HOST, rule)
    )
    tools.imports.on_import("platform", lambda module: tools.replace(module, "node", lambda _: _HOST, rule))
    tools.imports.on_import("uuid", lambda module: tools.replace(module, "getnode", lambda _: _NODE, rule))

    def uname(function: Any) -> Any:
        found = function()
        return type(found)((found[0], _HOST, *found[2:]))

    tools.replace(os, "uname", uname, rule)


def _pin_psutil(tools: PinTools, psutil: Any, real: Any) -> None:
    original = psutil.Process.__init__

    @functools.wraps(original)
    def begin(self: Any, pid: Any = None) -> None:
        original(self, real(pid))

    tools.patches.set(psutil.Process, "__init__", begin)


def pin_ports(tools: PinTools) -> None:
    """A port that the system is to choose is the first of a fixed row that is free."""
    tools.imports.on_import("socket", lambda module: _pin_bind(tools, module))


def _pin_bind(tools: PinTools, module: Any) -> None:
    original, get_frame = module.socket.bind, calling_frame

    @functools.wraps(original)
    def bind(self: Any, address: Any) -> None:
        chosen = isinstance(address, tuple) and len(address) > 1 and address[1] == 0
        if not (chosen and tools.asker.is_direct(get_frame(1))):
            original(self, address)
            return
        for port in range(_FIRST_PORT, _FIRST_PORT + _PORTS):
            try:
                original(self, (address[0], port, *address[2:]))
            except OSError:  # noqa: PERF203 - in use
                continue
            else:
                return
        original(self, address)

    tools.patches.set(module.socket, "bind", bind)
