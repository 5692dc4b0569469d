"""Replacing attributes so that they can be put back exactly as they were."""

from __future__ import annotations

import functools
import sys
from types import FunctionType, MethodDescriptorType, ModuleType
from typing import Any

from samebits.hooks.standing import StandingMethod, standing

_ABSENT = object()


def name_after_place(owner: Any, name: str, value: Any) -> None:
    """Have a wrapper be pickled as `owner.name`, where it is found as long as it stands there.

    A function is pickled by name (`Pool(initializer=torch.manual_seed)`), and pickle refuses one that is not
    what that name leads to. A wrapper that is found under the names that `functools.wraps` copied keeps them,
    and so is pickled as the original is.

    Args:
        owner: the module or class.
        name: the attribute.
        value: what stands there. Anything but a wrapper is left as it is.
    """
    if not isinstance(value, FunctionType) or not hasattr(value, "__wrapped__") or _found(value) is value:
        return
    if isinstance(owner, ModuleType):
        value.__module__, value.__qualname__ = owner.__name__, name
    elif isinstance(owner, type):
        value.__module__, value.__qualname__ = owner.__module__, f"{owner.__qualname__}.{name}"


class Patches:
    """A list of replaced attributes; `restore` undoes them, last first.

    A function of a module is replaced in the module that it comes from as well, as far as it stands there:
    `os.getpid` in `posix` too. There pickle looks for it, and there the two are the same object.
    """

    def __init__(self) -> None:
        self._saved: list[tuple[Any, str, Any]] = []
        self._at_home: dict[tuple[int, str], Any] = {}
        self._made: dict[int, tuple[Any, Any]] = {}

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replace `owner.name`; an inherited attribute is shadowed and later uncovered again."""
        original = vars(owner).get(name, _ABSENT)
        here = self._at_home.get((id(owner), name), _ABSENT)
        if here is original and getattr(value, "__wrapped__", None) is here is not _ABSENT:
            return  # replaced already, at the other of its two places
        if isinstance(owner, ModuleType):
            value = self._stand_for(original, value)
            home, name_there = _home_of(original)
            if home is not None and (home, name_there) != (owner, name):
                self._put(home, name_there, original, value)
                self._at_home[id(home), name_there] = value
        elif isinstance(owner, type):
            value = _as_the_method(value)
        self._put(owner, name, original, value)
        name_after_place(owner, name, value)

    def restore(self) -> None:
        """Put everything back."""
        self._at_home.clear()
        self._made.clear()
        while self._saved:
            owner, name, value = self._saved.pop()
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)

    def _stand_for(self, original: Any, value: Any) -> Any:
        """One wrapper for a function, in however many places it stands."""
        if getattr(value, "__wrapped__", _ABSENT) is not original:
            return value
        return self._made.setdefault(id(original), (original, _as_the_original(original, value)))[1]

    def _put(self, owner: Any, name: str, original: Any, value: Any) -> None:
        self._saved.append((owner, name, original))
        setattr(owner, name, value)


def _as_the_original(original: Any, value: Any) -> Any:
    """What stands for a function that is not written in Python: see `standing`."""
    written_in_python = isinstance(original, FunctionType | type) or original is _ABSENT
    if written_in_python or not isinstance(value, FunctionType) or not callable(original):
        return value
    return standing(original, staticmethod(value))


def _as_the_method(value: Any) -> Any:
    """What stands for a method of a class that is written in C: see `StandingMethod`."""
    original = getattr(value, "__wrapped__", None)
    if not isinstance(value, FunctionType) or not isinstance(original, MethodDescriptorType):
        return value
    return StandingMethod(original, value)


def _home_of(function: Any) -> tuple[ModuleType | None, str]:
    """The module in which pickle looks for a function, and the name there; None if it is not there."""
    module = sys.modules.get(str(getattr(function, "__module__", None)))
    name = str(getattr(function, "__qualname__", ""))
    if module is None or isinstance(function, type) or vars(module).get(name) is not function:
        return None, ""
    return module, name


def _found(function: Any) -> Any:
    """What the names of a function lead to."""
    module = sys.modules.get(function.__module__)
    try:
        return functools.reduce(getattr, function.__qualname__.split("."), module)
    except AttributeError:
        return None
