"""Kernels of ours in torch's dispatcher, by torch's own handle for them.

A `torch.library.Library` takes its kernels out when exit handlers run (`weakref.finalize`, torch/library.py,
2.11.0 to 2.15.0), so that handlers which a script registered before it imported torch would not meet them.
torch also counts its ops among those that Python code made, which `dispatch_key.composite_ops` leaves out.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class OpLibrary:
    """Kernels of ours, registered until `end` is called or the interpreter has ended.

    Names of ops are with their namespace here: `aten::mm`, `aten::sum.dim_IntList`.

    Args:
        defines: whether ops are defined here too.
    """

    def __init__(self, *, defines: bool = False) -> None:
        self._kind = "FRAGMENT" if defines else "IMPL"
        self._handles: dict[str, Any] = {}

    def define(self, schema: str) -> str:
        """Define an op, and return its name.

        Args:
            schema: such as `samebits::double(Tensor x) -> Tensor`.
        """
        namespace, _, rest = schema.partition("::")
        name: str = self._handle(namespace).define(rest, "", ())
        return f"{namespace}::{name.rpartition('::')[2]}"

    def impl(self, name: str, key: str, kernel: Callable[..., Any], *, with_keys: bool = False) -> None:
        """Register the kernel of an op.

        Args:
            name: of the op.
            key: the dispatch key.
            kernel: called with the arguments of the op, or `torch.library.fallthrough_kernel`.
            with_keys: whether the set of keys of the call is its first argument.
        """
        namespace, _, rest = name.partition("::")
        self._handle(namespace).impl(rest, key, kernel, with_keys)

    def fallback(self, key: str, kernel: Callable[..., Any]) -> None:
        """Register what runs at a key where an op has no kernel, for all ops.

        Args:
            key: the dispatch key.
            kernel: called with the `OpOverload` and its arguments.
        """
        self._handle("_").fallback(key, kernel, False)

    def end(self) -> None:
        """Take them out."""
        while self._handles:
            self._handles.popitem()[1].reset()

    def _handle(self, namespace: str) -> Any:
        if namespace not in self._handles:
            self._handles[namespace] = torch._C._dispatch_library(self._kind, namespace, "", __file__, 1)
        return self._handles[namespace]


@contextlib.contextmanager
def overriding() -> Iterator[None]:
    """Return a context in which kernels may take the place of others; torch warns of it once in a process."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(?s).*[Oo]verriding a previously registered kernel")
        yield
