"""Names of modules in the little room that a drawing has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_CUT = "…"


def told_apart(names: Sequence[str], most: int) -> list[str]:
    """Shorten names to so many characters, so that they can still be told apart.

    Where one is too long, what the paths begin with alike is left out of them. Then the middle of one is: the
    numbers of layers are at its beginning, what they hold at its end.

    Args:
        names: paths of modules.
        most: characters of one.
    """
    if all(len(name) <= most for name in names):
        return list(names)
    shared = _shared_beginning([name for name in names if "." in name])
    shorter = [
        f"{_CUT}{name[len(shared) :]}" if shared and name.startswith(shared) else name for name in names
    ]
    return [_without_middle(name, most) for name in shorter]


def _shared_beginning(paths: Sequence[str]) -> str:
    """Return the parts with which all paths begin, each with its dot; never all parts of one."""
    if len(set(paths)) < 2:
        return ""
    first, last = (path.split(".")[:-1] for path in (min(paths), max(paths)))
    alike = 0
    for ours, theirs in zip(first, last, strict=False):
        if ours != theirs:
            break
        alike += 1
    return "".join(f"{part}." for part in first[:alike])


def _without_middle(name: str, most: int) -> str:
    if len(name) <= most:
        return name
    head = (most - 1) // 2
    tail = most - 1 - head
    return f"{name[:head]}{_CUT}{name[-tail:]}"
