"""Kernels of ours in torch's dispatcher, by torch's own handle for them.

A `torch.library.Library` takes its kernels out when exit handlers run (`weakref.finalize`, torch/library.py,
2.11.0 to 2.15.0), so that handlers which a script registered before it imported torch would not meet them.
torch also counts its ops among those that Python code made, which `dispatch_key.composite_ops` leaves out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


class OpLibrary:
    """Kernels of the ops of one namespace, registered until `end` is called or the interpreter has ended.

    Args:
        namespace: such as `aten`; `_` for all.
        defines: whether ops are defined here too.
    """

    def __init__(self, namespace: str, *, defines: bool = False) -> None:
        kind, make = "FRAGMENT" if defines else "IMPL", torch._C._dispatch_library
        self._handle: Any = make(kind, namespace, "", __file__, 1)

    def define(self, schema: str) -> str:
        """Define an op, and return its name without the namespace."""
        name: str = self._handle.define(schema, "", ())
        return name.rpartition("::")[2]

    def impl(self, name: str, key: str, kernel: Callable[..., Any], *, with_keys: bool = False) -> None:
        """Register the kernel of an op.

        Args:
            name: of the op, without the namespace.
            key: the dispatch key.
            kernel: called with the arguments of the op, or `torch.library.fallthrough_kernel`.
            with_keys: whether the set of keys of the call is its first argument.
        """
        self._handle.impl(name, key, kernel, with_keys)

    def fallback(self, key: str, kernel: Callable[..., Any]) -> None:
        """Register what runs at a key where an op has no kernel, for all ops.

        Args:
            key: the dispatch key.
            kernel: called with the `OpOverload` and its arguments.
        """
        self._handle.fallback(key, kernel, False)

    def end(self) -> None:
        """Take them out."""
        self._handle.reset()
