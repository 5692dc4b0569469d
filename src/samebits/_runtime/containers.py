"""The contents of Python's containers: taken out and put back without code of the user's subclasses."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

CONTAINERS: tuple[type[Any], ...] = (OrderedDict, dict, list, set, deque, bytearray)
"""The kinds whose contents can be put back; a subclass comes before what it is made of."""


def contents(container: Any) -> Any:
    """Return a shallow copy of what a container holds: a dict, or a list of its elements."""
    base = _base(container)
    return dict(base.items(container)) if issubclass(base, dict) else list(base.__iter__(container))


def refill(container: Any, before: Any) -> None:
    """Put elements back where they are not the same objects any more.

    Args:
        container: to be filled.
        before: what `contents` gave.
    """
    if are_same(contents(container), before):
        return
    base = _base(container)
    if issubclass(base, (list, bytearray)):
        base.__setitem__(container, slice(None), before)
        return
    base.clear(container)
    (base.extend if base is deque else base.update)(container, before)


def are_same(a: Collection[Any], b: Collection[Any]) -> bool:
    """Tell whether two contents are the same objects in the same order."""
    if len(a) != len(b) or not all(x is y for x, y in zip(a, b, strict=True)):
        return False
    return not isinstance(a, dict) or all(x is y for x, y in zip(a.values(), b.values(), strict=True))  # type: ignore[attr-defined]


def restore_space(space: dict[str, Any], before: dict[str, Any]) -> None:
    """Put back the names of a namespace, one by one, so that other threads find the rest of them.

    Args:
        space: attributes of an object, or globals.
        before: a copy from before.
    """
    for name in [name for name in space if name not in before]:
        dict.pop(space, name, None)
    for name, value in before.items():
        if name not in space or space[name] is not value:
            dict.__setitem__(space, name, value)


def _base(container: Any) -> Any:
    return next(kind for kind in CONTAINERS if issubclass(type(container), kind))
