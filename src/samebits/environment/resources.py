"""Processors and memory, read from Linux: how much exists, is allowed to this process, and is in use."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def _group_folders(
    controller: str, proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")
) -> Iterator[tuple[int, Path]]:
    """Return the folders of this process's control groups and of those above them, each with its version.

    Args:
        controller: the limited resource: `cpu`, `memory`.
        proc: folder in which the system describes processes.
        groups: folder in which the system shows control groups, of version 1 or 2.
    """
    for line in read_text(proc / "self" / "cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            yield from ((2, folder) for folder in _with_parents(groups, path))
        elif controller in controllers.split(","):
            for root in (groups / controllers, groups / controller):
                yield from ((1, folder) for folder in _with_parents(root, path))


def read_text(path: Path) -> str:
    """Read a file of the system; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _with_parents(root: Path, path: str) -> list[Path]:
    """Return the folder of a control group and those above it; inside a container the path may not exist."""
    folder = root / path.strip().lstrip("/")
    return [folder, *(parent for parent in folder.parents if parent == root or root in parent.parents)]


_HYBRID_INTEL = ("cpu_core", "cpu_atom")


def read_quota(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Return how many processors the control group of this process may use on average; None without a limit.

    Containers are limited this way. Neither `os.sched_getaffinity` nor torch takes notice of it.

    Args:
        proc: folder in which the system describes processes.
        groups: folder in which the system shows control groups, of version 1 or 2.
    """
    kinds = {1: _quota_1, 2: _quota_2}
    limits = [kinds[version](folder) for version, folder in _group_folders("cpu", proc, groups)]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None


def read_kinds(devices: Path = Path("/sys/devices")) -> tuple[str, ...]:
    """Return the kinds of cores if there is more than one; empty where all are alike or nothing is known.

    Args:
        devices: folder in which the system describes devices.
    """
    if all((devices / name / "cpus").exists() for name in _HYBRID_INTEL):
        return _HYBRID_INTEL
    files = sorted((devices / "system" / "cpu").glob("cpu[0-9]*/cpu_capacity"))
    capacities = sorted({text for text in map(read_text, files) if text}, key=len)
    return tuple(f"capacity {text}" for text in capacities) if len(capacities) > 1 else ()


def _quota_2(folder: Path) -> float | None:
    words = read_text(folder / "cpu.max").split()
    return _ratio(*words) if len(words) == 2 else None


def _quota_1(folder: Path) -> float | None:
    return _ratio(read_text(folder / "cpu.cfs_quota_us"), read_text(folder / "cpu.cfs_period_us"))


def _ratio(quota: str, period: str) -> float | None:
    """Return the ratio; None for `max` (version 2), -1 (version 1) and for text that cannot be read."""
    with suppress(ValueError, ZeroDivisionError):
        value = int(quota) / int(period)
        return value if value > 0 else None
    return None


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
    """Return the processor time that was used until now; None where the system does not tell.

    Args:
        proc: folder in which the system describes itself.
    """
    whole = _busy_seconds(proc / "stat")
    if whole is None or sys.platform == "win32":
        return None
    import resource

    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Usage(children.ru_utime + children.ru_stime, whole)


def free_processors(others: float) -> float:
    """Return how many processors this process could still keep busy.

    Args:
        others: how many of those that it may use other programs keep busy.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    free = max(0.0, (len(affinity(0)) if affinity else os.cpu_count() or 1) - others)
    quota = read_quota()
    return free if quota is None else min(free, quota)


def largest_child_bytes() -> int:
    """Return the most memory that any ended child process of this one has held; on Linux, 0 on Windows."""
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def available_bytes(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return how much memory programs could still get here; None where the system does not tell.

    Args:
        proc: folder in which the system describes itself.
        groups: where the system shows control groups.
    """
    lines = read_text(proc / "meminfo").splitlines()
    limits = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    if not limits:
        return None
    for version, folder in _group_folders("memory", proc, groups):
        limits += _left_in_group(folder, *_MEMORY_FILES[version])
    return min(limits)


def _left_in_group(folder: Path, limit: str, used: str, cached: str) -> list[int]:
    """Return the memory that the limit of a control group leaves; cached files count as free."""
    with suppress(ValueError):  # "max" is no limit
        facts = dict(line.split() for line in read_text(folder / "memory.stat").splitlines())
        left = int(read_text(folder / limit)) - int(read_text(folder / used))
        return [left + int(facts.get(cached, 0))]
    return []


def _busy_seconds(stat: Path) -> float | None:
    affinity = getattr(os, "sched_getaffinity", None)
    if affinity is None or sys.platform == "win32":
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
