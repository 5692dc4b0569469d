"""The control groups that limit this process, as Linux shows them: containers, batch systems, services."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def group_folders(
    controller: str, proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")
) -> Iterator[tuple[int, Path]]:
    """The folders of the control groups that this process is in, each with its version, and those above them.

    Args:
        controller: what is limited: `cpu`, `memory`.
        proc: where the system describes processes.
        groups: where the system shows control groups, of version 1 or 2.
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
    """What is in a file of the system; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _with_parents(root: Path, path: str) -> list[Path]:
    """The folder of a control group and those above it; inside a container the path may lead nowhere."""
    folder = root / path.strip().lstrip("/")
    return [folder, *(parent for parent in folder.parents if parent == root or root in parent.parents)]
