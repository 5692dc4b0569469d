"""The memory-load pin: free memory and the load of the machine, as user code asks for them."""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from samebits.determinism.pins.opened import OpenedFiles
from samebits.hooks.frames import calling_frame

if TYPE_CHECKING:
    from samebits.determinism.pins.tools import PinTools

_BYTES = 1 << 30
_open = os.open  # the original
_SHARE = 50.0
_NUMBER = re.compile(r"(?<![\w.])\d+(\.\d+)?(?![\w.])")
_COUNTER = b"1000"
_OF_FILE = {"/proc/meminfo": b"1000000", "/proc/loadavg": b"1"}
# They do not change, or hold no load.
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


def pin_load(tools: PinTools) -> None:
    """Fix memory, load and counters of the machine and of this process."""
    rule = tools.asker.is_user
    tools.replace(os, "getloadavg", lambda _: (1.0, 1.0, 1.0), rule)
    tools.imports.on_import("resource", lambda module: tools.replace(module, "getrusage", _usage, rule))
    tools.imports.on_import("shutil", lambda module: tools.replace(module, "disk_usage", _frozen, rule))
    tools.imports.on_import("psutil", lambda psutil: _pin_psutil(tools, psutil))
    tools.imports.on_torch(lambda torch: _pin_devices(tools, torch))
    OpenedFiles(tools, _contents).install()


def frozen(value: Any) -> Any:
    """The same kind of value with fixed numbers; what is named `total` is a fact of the machine and stays."""
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


def _pin_psutil(tools: PinTools, psutil: Any) -> None:
    for name in _OF_PSUTIL:
        tools.replace(psutil, name, _frozen, tools.asker.is_user)
    for name in _OF_PSUTIL_PROCESS:
        _pin_method(tools, psutil.Process, name)


def _pin_method(tools: PinTools, owner: type, name: str) -> None:
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        value = original(self, *args, **kwargs)
        return frozen(value) if tools.asker.is_user(calling_frame()) else value

    tools.patches.set(owner, name, method)


def _pin_devices(tools: PinTools, torch: Any) -> None:
    for owner in (torch.cuda, sys.modules.get("torch.cuda.memory")):
        if owner is not None:
            tools.replace(owner, "mem_get_info", _device_memory, tools.asker.is_user)


def _device_memory(function: Any, *args: Any, **kwargs: Any) -> Any:
    _, total = function(*args, **kwargs)
    return total // 2, total


def _contents(path: str) -> bytes | None:
    changing = path.startswith("/proc/") and not _STEADY.match(path)
    if not (changing or _LOAD_IN_SYS.match(path)):
        return None
    try:
        with os.fdopen(_open(path, os.O_RDONLY), "rb") as file:
            found = file.read()
    except OSError:
        return None  # the script's own attempt raises
    number = _OF_FILE.get(path, _COUNTER)
    return re.sub(_NUMBER.pattern.encode(), number, found)
