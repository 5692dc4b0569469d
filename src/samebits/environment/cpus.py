"""Limits and kinds of processors, as Linux tells them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_HYBRID_INTEL = ("cpu_core", "cpu_atom")


def read_quota(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> float | None:
    """How many processors the control group of this process may use on average; None without a limit.

    Containers are limited so. Neither `os.sched_getaffinity` nor torch takes notice of it.

    Args:
        proc: where the system describes processes.
        groups: where the system shows control groups, of version 1 or 2.
    """
    limits = []
    for line in _read(proc / "self" / "cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            limits += [_quota_2(folder) for folder in _with_parents(groups, path)]
        elif "cpu" in controllers.split(","):
            for root in (groups / controllers, groups / "cpu"):
                limits += [_quota_1(folder) for folder in _with_parents(root, path)]
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
    capacities = sorted({text for text in map(_read, files) if text}, key=len)
    return tuple(f"capacity {text}" for text in capacities) if len(capacities) > 1 else ()


def _with_parents(root: Path, path: str) -> list[Path]:
    """The folder of a control group and those above it; inside a container the path may lead nowhere."""
    folder = root / path.strip().lstrip("/")
    return [folder, *(parent for parent in folder.parents if parent == root or root in parent.parents)]


def _quota_2(folder: Path) -> float | None:
    words = _read(folder / "cpu.max").split()
    return _ratio(*words) if len(words) == 2 else None


def _quota_1(folder: Path) -> float | None:
    return _ratio(_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us"))


def _ratio(quota: str, period: str) -> float | None:
    """None for `max` (version 2), -1 (version 1) and for what cannot be read."""
    with suppress(ValueError, ZeroDivisionError):
        value = int(quota) / int(period)
        return value if value > 0 else None
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
