"""The handlers of torch's ops: one module for each family, each handler declared with `@handles`."""

from __future__ import annotations

import functools
import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


@functools.cache
def families() -> tuple[ModuleType, ...]:
    """Return all modules of this package, by name; imported when they are first asked for."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return tuple(import_module(f"{__name__}.{name}") for name in names)
