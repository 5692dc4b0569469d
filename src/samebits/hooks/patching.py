"""Replacing attributes so that they can be put back exactly as they were."""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any

_ABSENT = object()


def name_after_place(owner: Any, name: str, value: Any) -> None:
    """Have a wrapper be pickled as `owner.name`, where it is found as long as it stands there.

    A function is pickled by name (`Pool(initializer=torch.manual_seed)`), and pickle refuses one that is not
    what that name leads to. The names that `functools.wraps` copies often lead elsewhere: those of
    `random.seed` to `random.Random.seed`, those of `torch.manual_seed` to `torch.random.manual_seed`.

    Args:
        owner: the module or class.
        name: the attribute.
        value: what will stand there. Anything but a wrapper is left as it is.
    """
    if not isinstance(value, FunctionType) or not hasattr(value, "__wrapped__"):
        return
    if isinstance(owner, ModuleType):
        value.__module__, value.__qualname__ = owner.__name__, name
    elif isinstance(owner, type):
        value.__module__, value.__qualname__ = owner.__module__, f"{owner.__qualname__}.{name}"


class Patches:
    """A list of replaced attributes; `restore` undoes them, last first."""

    def __init__(self) -> None:
        self._saved: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replace `owner.name`; an inherited attribute is shadowed and later uncovered again."""
        self._saved.append((owner, name, vars(owner).get(name, _ABSENT)))
        name_after_place(owner, name, value)
        setattr(owner, name, value)

    def restore(self) -> None:
        """Put everything back."""
        while self._saved:
            owner, name, value = self._saved.pop()
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
