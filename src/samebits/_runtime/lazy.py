"""Packages whose public names are imported when they are first used: importing samebits stays light."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def late_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package.

    Args:
        package: its `__name__`.
        homes: each public name, and the module below the package that has it.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)  # the next look-up finds it without this function
        return value

    return find


def late_dir(homes: Mapping[str, str]) -> Callable[[], list[str]]:
    """Return the `__dir__` of a package: its public names only.

    Args:
        homes: as for `late_names`.
    """
    return lambda: sorted(homes)


def make_callable(package: str, function: str) -> None:
    """Make a call of the package a call of one of its public functions."""

    class CallablePackage(ModuleType):
        def __call__(self, *arguments: Any, **named: Any) -> Any:
            return getattr(self, function)(*arguments, **named)

    sys.modules[package].__class__ = CallablePackage
