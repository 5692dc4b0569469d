"""How much of the machine programs use, as Linux tells it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from samebits.environment.cpus import read_quota

_IDLE = (3, 4)  # columns of /proc/stat: idle, waiting for a disk
_COLUMNS = 8  # those after them repeat what others hold


@dataclass(frozen=True)
class Usage:
    """Processor time until a moment, in seconds.

    Args:
        own: of the child processes of this one that have ended.
        whole: of all programs, on the processors that this process may use.
    """

    own: float
    whole: float


def read_usage(proc: Path = Path("/proc")) -> Usage | None:
    """What has been used until now; None where the system does not tell.

    Args:
        proc: where the system describes itself.
    """
    whole = _busy_seconds(proc / "stat")
    if whole is None:
        return None
    import resource  # not on every system

    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Usage(children.ru_utime + children.ru_stime, whole)


def processors() -> float:
    """How many processors this process may use: by its affinity, and by the limit of its control group."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    quota = read_quota()
    return count if quota is None else min(count, quota)


def largest_child_bytes() -> int:
    """The most memory that a child process of this one has held, of those that have ended; on Linux."""
    import resource

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def available_bytes(proc: Path = Path("/proc"), group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """How much memory programs could still get; None where the system does not tell.

    Args:
        proc: where the system describes itself.
        group: where the control group of a container is shown.
    """
    found: list[int] = []
    with suppress(OSError, ValueError, IndexError):
        lines = (proc / "meminfo").read_text(encoding="ascii").splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    if not found:
        return None
    with suppress(OSError, ValueError):  # "max" is no limit
        most = int((group / "memory.max").read_text(encoding="ascii"))
        found.append(most - int((group / "memory.current").read_text(encoding="ascii")))
    return min(found)


def _busy_seconds(stat: Path) -> float | None:
    affinity = getattr(os, "sched_getaffinity", None)
    if affinity is None:
        return None
    names = {f"cpu{number}" for number in affinity(0)}
    ticks, seen = 0, 0
    try:
        for line in stat.read_text(encoding="ascii").splitlines():
            name, *columns = line.split()
            if name in names:
                used = columns[:_COLUMNS]
                ticks += sum(int(text) for n, text in enumerate(used) if n not in _IDLE)
                seen += 1
    except (OSError, ValueError):
        return None
    return ticks / os.sysconf("SC_CLK_TCK") if seen == len(names) else None
