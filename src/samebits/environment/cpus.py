"""Limits and kinds of processors, as Linux tells them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from samebits.environment.control_groups import group_folders, read_text

_HYBRID_INTEL = ("cpu_core", "cpu_atom")


def read_quota(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> float | None:
    """How many processors the control group of this process may use on average; None without a limit.

    Containers are limited so. Neither `os.sched_getaffinity` nor torch takes notice of it.

    Args:
        proc: where the system describes processes.
        groups: where the system shows control groups, of version 1 or 2.
    """
    kinds = {1: _quota_1, 2: _quota_2}
    limits = [kinds[version](folder) for version, folder in group_folders("cpu", proc, groups)]
    found = [limit for limit in limits if limit is not None]
    return min(found) if found else None


def read_kinds(devices: Path = Path("/sys/devices")) -> tuple[str, ...]:
    """The kinds of cores, where there is more than one; empty where all are alike or nothing is known.

    Args:
        devices: where the system describes devices.
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
    """None for `max` (version 2), -1 (version 1) and for what cannot be read."""
    with suppress(ValueError, ZeroDivisionError):
        value = int(quota) / int(period)
        return value if value > 0 else None
    return None
