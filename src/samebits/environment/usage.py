"""How much of the machine programs use, as Linux tells it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from samebits.environment.control_groups import group_folders, read_text
from samebits.environment.cpus import read_quota

_MEMORY_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}
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


def free_processors(others: float) -> float:
    """How many processors this process could still keep busy.

    Args:
        others: how many of those that it may use other programs keep busy.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    free = max(0.0, (len(affinity(0)) if affinity else os.cpu_count() or 1) - others)
    quota = read_quota()
    return free if quota is None else min(free, quota)


def largest_child_bytes() -> int:
    """The most memory that a child process of this one has held, of those that have ended; on Linux."""
    import resource

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def available_bytes(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """How much memory programs could still get here; None where the system does not tell.

    Args:
        proc: where the system describes itself.
        groups: where the system shows control groups.
    """
    lines = read_text(proc / "meminfo").splitlines()
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    if not found:
        return None
    for version, folder in group_folders("memory", proc, groups):
        found += _left_in_group(folder, *_MEMORY_FILES[version])
    return min(found)


def _left_in_group(folder: Path, limit: str, used: str, cached: str) -> list[int]:
    """What the limit of a control group leaves; files that are cached could be given back."""
    with suppress(ValueError):  # "max" is no limit
        facts = dict(line.split() for line in read_text(folder / "memory.stat").splitlines())
        left = int(read_text(folder / limit)) - int(read_text(folder / used))
        return [left + int(facts.get(cached, 0))]
    return []


def _busy_seconds(stat: Path) -> float | None:
    affinity = getattr(os, "sched_getaffinity", None)
    if affinity is None:
        return None
    names = {f"cpu{number}" for number in affinity(0)}
    ticks, seen = 0, 0
    with suppress(ValueError):
        for line in read_text(stat).splitlines():
            name, *columns = line.split()
            if name in names:
                used = columns[:_COLUMNS]
                ticks += sum(int(text) for n, text in enumerate(used) if n not in _IDLE)
                seen += 1
    return ticks / os.sysconf("SC_CLK_TCK") if seen == len(names) else None
