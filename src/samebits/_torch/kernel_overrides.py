"""Kernels of our own in front of those that torch's dispatcher has.

torch takes a Python function for any place in its dispatcher (`torch.library.Library.impl`). The kernel that
was there is needed for calls that are not ours; `torch.library.get_kernel` gives it, since 2.9.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.op_library import OpLibrary, overriding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Kernel = Callable[..., Any]
    """Called with torch's own kernel, and then with the arguments of the op."""

GRAPH_KEY = "AutogradCPU"
"""The place in the dispatcher where torch adds ops of tensors in CPU memory to the autograd graph."""
CUDA_GRAPH_KEY = "AutogradCUDA"
"""The place where it adds those of tensors on a GPU."""


class KernelOverrides:
    """Kernels of ours in front of torch's own, for as long as anybody holds them, in all threads.

    Args:
        kernels: by name of the op, such as `clamp` or `clamp.Tensor`; with its namespace if that is not aten.
        keys: the places in the dispatcher, such as `GRAPH_KEY`, or `CUDA` for the kernels of a device.
    """

    def __init__(self, kernels: Mapping[str, Kernel], *keys: str) -> None:
        self._kernels = dict(kernels)
        self._keys = keys
        self._lock = threading.Lock()
        self._holders = 0
        self._library = OpLibrary()

    def hold(self) -> None:
        """Register them, unless they are."""
        with self._lock:
            if self._holders == 0:
                self._register()
            self._holders += 1

    def release(self) -> None:
        """Take them out again, once nobody holds them."""
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._library.end()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Return a context in which they are registered."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    def _register(self) -> None:
        if not can_override():
            return
        with overriding():
            try:
                for (name, kernel), key in itertools.product(self._kernels.items(), self._keys):
                    self._override(name, key, kernel)
            except BaseException:
                self._library.end()
                raise

    def _override(self, name: str, key: str, kernel: Kernel) -> None:
        self._library.impl(_whole(name), key, self._running(name, key, kernel), with_keys=True)

    def _running(self, name: str, key: str, kernel: Kernel) -> Callable[..., Any]:
        own = torch.library.get_kernel(op_named(name), key)

        def run(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            return kernel(lambda: own.call_boxed(keyset, *args, **kwargs), *args, **kwargs)

        return run


def op_named(name: str) -> Any:
    """Return the op of a name such as `clamp` or `clamp.Tensor`: of aten, unless it says otherwise."""
    namespace, _, rest = _whole(name).partition("::")
    base, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")


def exists(name: str) -> bool:
    """Tell whether this torch has an op of that name, as `op_named` takes it."""
    base, _, overload = _whole(name).partition(".")
    return torch._C._get_operation_overload(base, overload) is not None


def _whole(name: str) -> str:
    return name if "::" in name else f"aten::{name}"


def can_override() -> bool:
    """Tell whether this torch gives the kernel that one of ours replaces (since 2.9)."""
    return hasattr(torch.library, "get_kernel")
