"""Kernels of ours where autocast converts the arguments of ops.

Each kind of device has a key for it in torch's dispatcher, above autograd, and ops that are not registered
there pass (ATen/autocast_mode.cpp, 2.13.0). A thread goes there while autocast is enabled for that kind.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from samebits._torch.kernel_overrides import KernelOverrides, op_named

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

CPU_CASTS = "AutocastCPU"
GPU_CASTS = "AutocastCUDA"


def cast_ops(key: str) -> frozenset[str]:
    """Return the ops of aten that torch's autocast converts the arguments of, such as `conv2d.padding`.

    Args:
        key: `CPU_CASTS` or `GPU_CASTS`.
    """
    registered: Any = torch._C._dispatch_get_registrations_for_dispatch_key
    return frozenset(name.removeprefix("aten::") for name in registered(key) if name.startswith("aten::"))


class CastOverrides(KernelOverrides):
    """Kernels of ours in front of those of autocast, where torch has one or not.

    Each is called with an `AutocastCall`, and then with the arguments of the op.
    """

    def _running(self, name: str, key: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        op = op_named(name)
        has_kernel: Any = torch._C._dispatch_has_kernel_for_dispatch_key
        own = torch.library.get_kernel(op, key) if has_kernel(f"aten::{name}", key) else None

        def run(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            return kernel(AutocastCall(op, key, own, keyset), *args, **kwargs)

        return run


class AutocastCall(NamedTuple):
    """A call of an op where autocast is enabled.

    Args:
        op: the `OpOverload`.
        key: where its arguments are converted.
        own: the kernel of torch there, None if it has none.
        keyset: the places in the dispatcher that the call has yet to see.
    """

    op: Any
    key: str
    own: Any
    keyset: Any

    def as_torch(self, *args: Any, **kwargs: Any) -> Any:
        """Do what torch does."""
        if self.own is None:
            return self.pass_on(*args, **kwargs)
        return self.own.call_boxed(self.keyset, *args, **kwargs)

    def pass_on(self, *args: Any, **kwargs: Any) -> Any:
        """Convert nothing; the ops that it consists of may."""
        return self.op.redispatch(self.keyset & _after(self.key), *args, **kwargs)

    def without_autocast(self, *args: Any, **kwargs: Any) -> Any:
        """Call the op where autocast is not enabled."""
        with _disabled(self.key):
            return self.op(*args, **kwargs)


@functools.cache
def _after(key: str) -> Any:
    core: Any = torch._C
    return core._dispatch_keyset_full_after(core._dispatch_key_parse(key))


def _disabled(key: str) -> AbstractContextManager[object]:
    core: Any = torch._C
    guard: AbstractContextManager[object] = core._ExcludeDispatchKeyGuard(_one(key))
    return guard


@functools.cache
def _one(key: str) -> Any:
    core: Any = torch._C
    return core.DispatchKeySet(core._dispatch_key_parse(key))
