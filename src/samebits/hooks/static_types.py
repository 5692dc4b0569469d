"""Replacing methods of types that are written in C and refuse assignment."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

from samebits.hooks.patching import Layer, Patches, name_after_place


class StaticTypePatches(Patches):
    """Replaced methods of C types, such as `torch.Generator.seed`; `restore` undoes them.

    `setattr` refuses (`cannot set 'seed' attribute of immutable type`), and so does the proxy that `vars`
    gives. The dict behind the proxy is an ordinary one, which `gc.get_referents` finds; CPython documents
    `PyType_Modified` for telling the interpreter that it was changed. Not for names with two
    underscores on each side: the interpreter finds those through slots.
    """

    def set(self, owner: type, name: str, value: Any) -> None:
        """Replace the method `name` that `owner` itself has.

        Raises:
            KeyError: it has none of that name.
        """
        layer = Layer(owner, name, vars(owner)[name], _assign)
        name_after_place(owner, name, value)
        self._put(layer, value)


def _assign(owner: type, name: str, value: Any) -> None:
    (members,) = gc.get_referents(vars(owner))
    members[name] = value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))
