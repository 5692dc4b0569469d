"""Ops of samebits in torch's dispatcher, so that a dispatch mode sees them as it sees those of torch."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NAMESPACE = "samebits"
_KEYS = ("CPU", "CUDA")


class OwnOps:
    """Ops that are defined at their first use, and stay until the process ends.

    Args:
        kernels: the function of each, by its schema without the namespace.
    """

    def __init__(self, kernels: Mapping[str, Callable[..., Any]]) -> None:
        self._kernels = dict(kernels)
        self._lock = threading.Lock()
        self._library: Any = None

    def named(self, name: str) -> Any:
        """Return an op.

        Args:
            name: without the namespace.
        """
        import torch

        with self._lock:
            if self._library is None:
                self._library = self._defined()
        return getattr(getattr(torch.ops, NAMESPACE), name).default

    def kernel_of(self, op: Any) -> Callable[..., Any]:
        """Return the function of one of these ops."""
        return next(kernel for schema, kernel in self._kernels.items() if schema.startswith(f"{op._opname}("))

    def _defined(self) -> Any:
        from samebits._torch.op_library import OpLibrary

        library = OpLibrary(defines=True)
        for schema, kernel in self._kernels.items():
            name = library.define(f"{NAMESPACE}::{schema}")
            for key in _KEYS:
                library.impl(name, key, kernel)
        return library
