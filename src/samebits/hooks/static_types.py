"""Replacing methods of types that are written in C and refuse assignment."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

from samebits.hooks.patching import name_after_place


class StaticTypePatches:
    """Replaced methods of C types, such as `torch.Generator.seed`; `restore` undoes them.

    `setattr` refuses (`cannot set 'seed' attribute of immutable type`), and so does the proxy that `vars`
    gives. The dict behind the proxy is an ordinary one, which `gc.get_referents` finds; CPython documents
    `PyType_Modified` for telling the interpreter that it was changed. Not for names with two
    underscores on each side: the interpreter finds those through slots.
    """

    def __init__(self) -> None:
        self._saved: list[tuple[type, str, Any]] = []

    def set(self, owner: type, name: str, value: Any) -> None:
        """Replace the method `name` that `owner` itself has."""
        self._saved.append((owner, name, vars(owner)[name]))
        name_after_place(owner, name, value)
        _assign(owner, name, value)

    def restore(self) -> None:
        """Put everything back."""
        while self._saved:
            _assign(*self._saved.pop())


def _assign(owner: type, name: str, value: Any) -> None:
    (members,) = gc.get_referents(vars(owner))
    members[name] = value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))
