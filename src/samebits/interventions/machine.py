"""Interventions on facts of the process and the machine: numbers, names, ports, free memory, load."""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import calling_frame
from samebits.interventions.intervention import Intervention, OpenedFiles, number_for
from samebits.rng.active import thread_name

if TYPE_CHECKING:
    from samebits.interventions.intervention import Replacements

_BYTES = 1 << 30
_open = os.open  # the original
_SHARE = 50.0
_NUMBER = re.compile(r"(?<![\w.])\d+(\.\d+)?(?![\w.])")
_COUNTER = b"1000"
_OF_FILE = {"/proc/meminfo": b"1000000", "/proc/loadavg": b"1"}
# These do not change, or hold no load.
_STEADY = re.compile(
    r"/proc/(cpuinfo|version|filesystems|cmdline|mounts|sys/|[^/]+/(cmdline|environ|maps|smaps|mounts|comm|fd|ns))"
)
_LOAD_IN_SYS = re.compile(
    r"/sys/(fs/cgroup|class/(thermal|hwmon|net)|devices/system/cpu/.*freq|block/.*/stat)"
)
_OF_PSUTIL = (
    "virtual_memory", "swap_memory", "cpu_percent", "cpu_times", "cpu_times_percent", "cpu_stats", "cpu_freq",
    "getloadavg", "disk_usage", "disk_io_counters", "net_io_counters", "sensors_temperatures",
    "sensors_battery",
)  # fmt: skip
_OF_PSUTIL_PROCESS = (
    "memory_info", "memory_full_info", "memory_percent", "cpu_percent", "cpu_times", "io_counters", "num_fds",
    "num_ctx_switches", "num_threads",
)  # fmt: skip
# Above the highest number that Linux gives (2**22): a signal that is sent there reaches nobody.
_ABOVE_PIDS = 5_000_000
_HOST = "pinned-host"
_NODE = 0x0200_0000_5EED
_FIRST_PORT, _PORTS = 23_456, 2_000
_OWN, _PARENT = "process", "parent"


def fix_load(replacements: Replacements) -> None:
    """Fix memory, load and counters of the machine and of this process."""
    rule = replacements.asker.is_user
    replacements.replace(os, "getloadavg", lambda _: (1.0, 1.0, 1.0), rule)
    replacements.imports.on_import(
        "resource", lambda module: replacements.replace(module, "getrusage", _usage, rule)
    )
    replacements.imports.on_import(
        "shutil", lambda module: replacements.replace(module, "disk_usage", _frozen, rule)
    )
    replacements.imports.on_import("psutil", lambda psutil: _fix_psutil(replacements, psutil))
    replacements.imports.on_torch(lambda torch: _fix_devices(replacements, torch))
    OpenedFiles(replacements, _contents).install()


def frozen(value: Any) -> Any:
    """Return the same kind of value with fixed numbers; `total` is a fact of the machine and stays."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _BYTES if isinstance(value, int) else _SHARE
    if isinstance(value, dict):
        return {key: frozen(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = zip(value._fields, value, strict=True)
        return type(value)(*(item if name == "total" else frozen(item) for name, item in fields))
    if isinstance(value, list | tuple):
        return type(value)(frozen(item) for item in value)
    return value


def _frozen(function: Any, *args: Any, **kwargs: Any) -> Any:
    return frozen(function(*args, **kwargs))


def _usage(function: Any, *args: Any) -> Any:
    usage = function(*args)
    return type(usage)((*usage[:2], *([1000] * (len(usage) - 2))))


def _fix_psutil(replacements: Replacements, psutil: Any) -> None:
    for name in _OF_PSUTIL:
        replacements.replace(psutil, name, _frozen, replacements.asker.is_user)
    for name in _OF_PSUTIL_PROCESS:
        _fix_method(replacements, psutil.Process, name)


def _fix_method(replacements: Replacements, owner: type, name: str) -> None:
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        value = original(self, *args, **kwargs)
        return frozen(value) if replacements.asker.is_user(calling_frame()) else value

    replacements.patches.set(owner, name, method)


def _fix_devices(replacements: Replacements, torch: Any) -> None:
    for owner in (torch.cuda, sys.modules.get("torch.cuda.memory")):
        if owner is not None:
            replacements.replace(owner, "mem_get_info", _device_memory, replacements.asker.is_user)


def _device_memory(function: Any, *args: Any, **kwargs: Any) -> Any:
    _, total = function(*args, **kwargs)
    return total // 2, total


def _contents(path: str) -> bytes | None:
    changing = path.startswith("/proc/") and not _STEADY.match(path)
    if not (changing or _LOAD_IN_SYS.match(path)):
        return None
    try:
        with os.fdopen(_open(path, os.O_RDONLY), "rb") as file:
            contents = file.read()
    except OSError:
        return None  # the script's own attempt raises
    number = _OF_FILE.get(path, _COUNTER)
    return re.sub(_NUMBER.pattern.encode(), number, contents)


def fix_process(replacements: Replacements) -> None:
    """Fix the numbers of processes and threads and the name of the host, for the user's own code.

    Functions that take such a number get the real one.
    """
    rule = replacements.asker.is_user
    getpid, getppid = os.getpid, os.getppid
    replacements.replace(os, "getpid", lambda _: _pid(_OWN), rule)
    replacements.replace(os, "getppid", lambda _: _pid(_PARENT), rule)

    def real(number: Any) -> Any:
        if number == _pid(_OWN):
            return getpid()
        return getppid() if number == _pid(_PARENT) else number

    def with_real(function: Any, number: Any, *args: Any, **kwargs: Any) -> Any:
        return function(real(number), *args, **kwargs)

    for name in ("kill", "getpgid", "getsid", "sched_getaffinity", "sched_setaffinity", "pidfd_open"):
        replacements.replace(os, name, with_real, rule)
    for name in ("get_ident", "get_native_id"):
        replacements.replace(threading, name, lambda _: 1 + number_for("thread", thread_name()) % 2**31, rule)
    _fix_names(replacements, rule)
    replacements.imports.on_import("psutil", lambda psutil: _fix_psutil_process(replacements, psutil, real))


def _pid(of: str) -> int:
    return _ABOVE_PIDS + number_for(of) % 1_000_000


def _fix_names(replacements: Replacements, rule: Any) -> None:
    replacements.imports.on_import(
        "socket", lambda module: replacements.replace(module, "gethostname", lambda _: _HOST, rule)
    )
    replacements.imports.on_import(
        "platform", lambda module: replacements.replace(module, "node", lambda _: _HOST, rule)
    )
    replacements.imports.on_import(
        "uuid", lambda module: replacements.replace(module, "getnode", lambda _: _NODE, rule)
    )

    def uname(function: Any) -> Any:
        names = function()
        return type(names)((names[0], _HOST, *names[2:]))

    replacements.replace(os, "uname", uname, rule)


def _fix_psutil_process(replacements: Replacements, psutil: Any, real: Any) -> None:
    original = psutil.Process.__init__

    @functools.wraps(original)
    def begin(self: Any, pid: Any = None) -> None:
        original(self, real(pid))

    replacements.patches.set(psutil.Process, "__init__", begin)


def fix_ports(replacements: Replacements) -> None:
    """Give the first free port of a fixed row where the system is to choose one."""
    replacements.imports.on_import("socket", lambda module: _fix_bind(replacements, module))


def _fix_bind(replacements: Replacements, module: Any) -> None:
    original, get_frame = module.socket.bind, calling_frame

    @functools.wraps(original)
    def bind(self: Any, address: Any) -> None:
        chosen = isinstance(address, tuple) and len(address) > 1 and address[1] == 0
        if not (chosen and replacements.asker.is_direct(get_frame(1))):
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

    replacements.patches.set(module.socket, "bind", bind)


MEMORY_LOAD = Intervention(
    "memory-load",
    "with free memory and the machine's load fixed",
    patch=fix_load,
    limits="what C code reads of /proc; psutil and the files of /proc and /sys are covered",
)
PROCESS = Intervention(
    "process",
    "with process numbers and the host's name fixed",
    patch=fix_process,
    limits="numbers that libraries ask for, and what /proc says",
)
PORTS = Intervention(
    "ports",
    "with the ports that the system hands out fixed",
    patch=fix_ports,
    limits="ports that C code or another program binds; a port in use is passed over",
)
