"""Draws of what a file system, a network or a machine says: times, inodes, ports, memory, load."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from samebits.hooks.asking import HANDING_ON, Asker
from samebits.hooks.frames import USER, calling_frame
from samebits.hooks.standing import leave_no_line, standing
from samebits.recording.probes.draw_functions import user_fact

if TYPE_CHECKING:
    from samebits.hooks.imports import PostImport
    from samebits.hooks.patching import Patches
    from samebits.recording.probes.draw_log import DrawLog

_PATHS = HANDING_ON | {"posixpath", "ntpath", "genericpath"}
_STATUS = frozenset({"stat", "lstat", "fstat"})
_TIMES = _STATUS | {"getmtime", "getctime", "getatime"}  # others ask whether there is a file, or its size
_OF_PSUTIL = (
    "virtual_memory", "swap_memory", "cpu_percent", "cpu_times", "cpu_stats", "getloadavg", "disk_usage",
    "net_io_counters", "disk_io_counters", "pids",
)  # fmt: skip

_OF_PROCESS = (
    "memory_info", "memory_full_info", "memory_percent", "cpu_percent", "cpu_times", "io_counters", "num_fds",
    "num_ctx_switches", "num_threads",
)  # fmt: skip


def watch_facts(patches: Patches, log: DrawLog, imports: PostImport) -> None:
    """Record what the script asks of files, sockets and the machine.

    Args:
        patches: undo the replacements.
        log: told of draws.
        imports: calls back when a module is imported.
    """
    asker = Asker(log.ranks, _PATHS)
    for name in ("stat", "lstat", "fstat"):
        patches.set(os, name, _status(getattr(os, name), name, log, asker))

    def stand(module: Any, *names: str) -> None:
        for name in names:
            function = getattr(module, name, None)
            if function is not None:
                patches.set(module, name, user_fact(function, f"{module.__name__}.{name}", log))

    imports.on_import("resource", lambda module: stand(module, "getrusage"))
    imports.on_import("shutil", lambda module: stand(module, "disk_usage"))
    imports.on_import("psutil", lambda module: stand(module, *_OF_PSUTIL))
    imports.on_import("psutil", lambda module: _watch_process(module.Process, patches, log))
    imports.on_import("socket", lambda module: _watch_ports(module, patches, log))


def _status(function: Any, name: str, log: DrawLog, asker: Asker) -> Any:
    """Stands for `os.stat`: times and inode are draws of their own, for other things decide them."""

    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            found = function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        frame = calling_frame()
        if log.active:
            asked = asker.find(frame, f"os.{name}")
            asked_by = "" if asked is None else asked[1].rpartition(".")[2]
            if asked is not None and asked_by in _TIMES:
                log.taken_by_user(f"{asked[1]}.time", asked[0], found.st_mtime_ns)
            if asked is not None and asked_by in _STATUS:
                log.taken_by_user(f"{asked[1]}.inode", asked[0], found.st_ino)
        return found

    return standing(function, call)


def _watch_process(kind: Any, patches: Patches, log: DrawLog) -> None:
    """What a script asks of a process by `psutil`: memory, time, files."""
    for name in _OF_PROCESS:
        method = getattr(kind, name, None)
        if method is not None:
            patches.set(kind, name, _asked(method, f"psutil.Process.{name}", log))


def _asked(method: Any, op: str, log: DrawLog) -> Any:
    @functools.wraps(method)
    def asked(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            value = method(self, *args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        frame = calling_frame()
        if log.active and log.ranks.of(frame) == USER:
            log.taken_by_user(op, frame, value)
        return value

    return asked


def _watch_ports(module: Any, patches: Patches, log: DrawLog) -> None:
    original = module.socket.getsockname

    @functools.wraps(original)
    def getsockname(self: Any) -> Any:
        value = original(self)
        log.taken("socket.getsockname", calling_frame(), repr(value))
        return value

    patches.set(module.socket, "getsockname", getsockname)
