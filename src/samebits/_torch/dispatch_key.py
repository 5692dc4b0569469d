"""A place of our own in torch's dispatcher: below autograd and every dispatch mode, above the CPU's kernels.

A *dispatch key* is such a place. torch keeps this one for random number generators of other packages and
registers nothing there itself (c10/core/DispatchKey.h, `CustomRNGKeyId`, 2.6.0 to 2.15.0). A thread goes
there while the key is among those that it includes; torch hands these on to the threads of autograd.

Where a name is missing, `can_register` says no, and portable mode is a dispatch mode.
"""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Callable  # noqa: TC003 - NamedTuple looks at its types
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from samebits._torch.op_library import OpLibrary, overriding
from samebits._torch.tensor_access import library

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from contextlib import AbstractContextManager

_KEY = "CustomRNGKeyId"
_LEFT_OUT = ("Sparse", "SparseCsr", "NestedTensor", "MkldnnCPU", "Quantized")
"""Kinds of tensors whose kernels torch would choose before ours: threads that are inside go past them."""
_NAMES = (
    "_ForceDispatchKeyGuard",
    "_dispatch_has_kernel_for_dispatch_key",
    "_dispatch_get_registrations_for_dispatch_key",
    "_dispatch_key_parse",
    "_dispatch_keyset_full",
    "_dispatch_keyset_full_after",
    "_dispatch_tls_local_exclude_set",
    "_dispatch_tls_local_include_set",
)
_KEYS_OF_THREAD = "_ZN3c104impl26raw_local_dispatch_key_setE"
_WHOLE = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
_TAKEN_APART = "CompositeImplicitAutograd"
_GRAPH = ("Autograd", "AutogradCPU")
_CPU = "CPU"
_DEVICES = ("CUDA", "HIP", "XPU", "MPS", "HPU", "MTIA", "XLA", "Lazy", "PrivateUse1")
_ALLOCATIONS = ("aten::empty.memory_format", "aten::empty_strided")
_CHOOSER = "BackendSelect"
"""Where torch sends ops that make tensors, straight on to the kernels of the device that they name."""


@functools.cache
def can_register() -> bool:
    """Tell whether this torch has all that `Registrations` needs."""
    if not all(hasattr(torch._C, name) for name in _NAMES):
        return False
    libraries: Any = torch.library.Library
    # Without the latter the gradients of some ops would not be ours (_torch/autograd_kernels.py), and torch
    # computes them in another way than in a dispatch mode.
    return hasattr(libraries, "fallback") and hasattr(torch.library, "get_kernel")


class Registrations:
    """Kernels at the key, which every op reaches in threads that are inside (`inside`).

    They stay registered until the process ends. A thread that is not inside never meets them, but for those
    of `set_factory` and `set_on_devices`. Names of ops are with their namespace here: `aten::mm`,
    `aten::sum.dim_IntList`.
    """

    def __init__(self) -> None:
        self._library = OpLibrary()
        self._names: set[str] = set()

    def catch_all(self, kernel: Callable[..., Any]) -> None:
        """Have all ops call a function, of every namespace, also those that are registered later.

        It does not reach ops that torch makes of others (`composite_ops`).

        Args:
            kernel: called with the `OpOverload` and its arguments.
        """
        self._library.fallback(_KEY, kernel)

    def set(self, name: str, kernel: Callable[..., Any]) -> None:
        """Have an op call a function with its arguments, once and for all.

        Args:
            name: of the op.
            kernel: the function.
        """
        if name not in self._names:
            self._names.add(name)
            self._library.impl(name, _KEY, kernel)

    def pass_on(self, name: str) -> None:
        """Let an op go on to torch's own kernel as if the key was not there.

        Args:
            name: of the op.
        """
        self.set(name, torch.library.fallthrough_kernel)

    def set_factory(self, name: str, kernel: Callable[..., Any]) -> None:
        """Have an op that makes tensors call a function, in threads that are inside.

        Args:
            name: of the op.
            kernel: the function.
        """
        self._replace(name, _CHOOSER, kernel)

    def set_on_devices(self, kernel: Callable[..., Any], *, but: Collection[str]) -> None:
        """Have what allocates memory on devices but the CPU call a function, in threads that are inside.

        Args:
            kernel: called with the name of the op, and its arguments.
            but: devices that are left as they are, such as `cuda`.
        """
        has_kernel: Any = torch._C._dispatch_has_kernel_for_dispatch_key
        for name, device in itertools.product(_ALLOCATIONS, _DEVICES):
            if device.lower() not in but and has_kernel(name, device):
                self._replace(name, device, functools.partial(kernel, name))

    def _replace(self, name: str, key: str, kernel: Callable[..., Any]) -> None:
        own = torch.library.get_kernel(name, key)

        def run(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            return kernel(*args, **kwargs) if is_inside() else own.call_boxed(keyset, *args, **kwargs)

        with overriding():
            self._library.impl(name, key, run, with_keys=True)


def factory_ops() -> frozenset[str]:
    """Return the ops that make tensors of nothing, which do not come to the key."""
    return _registered(_CHOOSER)


def composite_ops() -> frozenset[str]:
    """Return the ops that have a kernel for all devices, which torch would run at the key.

    It may compute by itself. Those that Python code registered are left out: its ops come one by one.
    """
    with_two = _registered(_TAKEN_APART) & _registered(_CPU)
    return (_registered(*_WHOLE) | with_two) - _made_in_python(_WHOLE)


def ops_taken_apart() -> frozenset[str]:
    """Return the ops that torch makes of others before they come to any kernel."""
    return _registered(_TAKEN_APART) - _registered(_CPU)


def ops_that_run_first() -> frozenset[str]:
    """Return the ops of which code in C++ runs before any kernel or dispatch mode is asked.

    It takes them apart, or adds them to the autograd graph. What does the latter for torch's own ops is left
    out: it calls the op below.
    """
    listed: Any = torch._C._dispatch_get_registrations_for_dispatch_key
    graphs = (name for key in _GRAPH for name in listed(key) if not name.startswith("aten::"))
    return _registered(_TAKEN_APART).union(graphs) - _made_in_python((_TAKEN_APART, *_GRAPH))


def _registered(*aliases: str) -> frozenset[str]:
    listed: Any = torch._C._dispatch_get_registrations_for_dispatch_key
    return frozenset(name for alias in aliases for name in listed(alias))


def _made_in_python(aliases: tuple[str, ...]) -> frozenset[str]:
    """Return the ops that Python code registered under these aliases, but for those of torch itself."""
    known: Any = vars(torch.library).get("_impls", ())
    names = (key.split("/") for key in known)
    return frozenset(f"{space}::{op}" for space, op, alias in names if alias in aliases and space != "aten")


def inside() -> AbstractContextManager[object]:
    """Return a context, to be entered once, in which ops of this thread go to `Registrations`."""
    core: Any = torch._C
    left_out = _key_set(_LEFT_OUT) | core._dispatch_tls_local_exclude_set()
    return _forced(core._dispatch_tls_local_include_set() | _key_set([_KEY]), left_out)


def outside() -> AbstractContextManager[object]:
    """Return a context, to be entered once, in which ops go to torch's own kernels, past autograd.

    It is what a dispatch mode has around it: keys above modes are left out.
    """
    core: Any = torch._C
    included, excluded = core._dispatch_tls_local_include_set(), core._dispatch_tls_local_exclude_set()
    return _forced(included - _key_set([_KEY]), (excluded - _key_set(_LEFT_OUT)) | _above_modes())


def switch_of(module: Any) -> Switch | None:
    """Return what does the same as `outside` without a call of torch, None where this cannot be.

    torch keeps the keys that a thread includes and excludes in 128 bits, under a name of C++ that other
    libraries see on Linux (c10/core/impl/LocalDispatchKeySet.h). It stores what differs from the defaults.

    Args:
        module: `samebits._ops`.
    """
    core, torchs = torch._C, library("c10")
    if torchs is None or not module.set_scope(torchs._handle, _KEYS_OF_THREAD, 0, 0, 0):
        return None
    _, excluded = struct.unpack("QQ", module.leave())
    by_default = excluded ^ core._dispatch_tls_local_exclude_set().raw_repr()
    above = _above_modes().raw_repr()
    less = _key_set(_LEFT_OUT).raw_repr() | (above & by_default)
    module.set_scope(torchs._handle, _KEYS_OF_THREAD, _one(_KEY).raw_repr(), less, above & ~by_default)
    if _does_the_same(module):
        return Switch(module.leave, module.return_to)
    module.set_scope(0, _KEYS_OF_THREAD, 0, 0, 0)  # C code must not use it either
    return None


class Switch(NamedTuple):
    """Two functions that a thread calls around what it computes with torch's own kernels.

    Args:
        leave: returns what `return_to` gets.
        return_to: puts the keys back.
    """

    leave: Callable[[], Any]
    return_to: Callable[[Any], Any]


def slow_switch() -> Switch:
    """Return a switch that works everywhere."""

    def leave() -> Any:
        context = outside()
        context.__enter__()
        return context

    return Switch(leave, lambda context: context.__exit__(None, None, None))


def _does_the_same(module: Any) -> bool:
    with inside():
        before = _keys_of_thread()
        with outside():
            wanted = _keys_of_thread()
        state = module.leave()
        found = _keys_of_thread()
        module.return_to(state)
        return found == wanted and _keys_of_thread() == before


def _keys_of_thread() -> tuple[int, int]:
    core: Any = torch._C
    included, excluded = core._dispatch_tls_local_include_set(), core._dispatch_tls_local_exclude_set()
    return included.raw_repr(), excluded.raw_repr()


def is_inside() -> bool:
    """Tell whether ops of this thread go to the kernels of `Registrations`."""
    core: Any = torch._C
    return bool(core._dispatch_tls_local_include_set().has(_key(_KEY)))


def _forced(included: Any, excluded: Any) -> AbstractContextManager[object]:
    guard: Any = torch._C._ForceDispatchKeyGuard(included, excluded)
    entered: AbstractContextManager[object] = guard
    return entered


@functools.cache
def _key(name: str) -> Any:
    return torch._C._dispatch_key_parse(name)


def _key_set(names: Iterable[str]) -> Any:
    return functools.reduce(lambda one, other: one | other, map(_one, names))


@functools.cache
def _one(name: str) -> Any:
    core: Any = torch._C
    return core.DispatchKeySet(_key(name))


@functools.cache
def _above_modes() -> Any:
    core: Any = torch._C
    return core._dispatch_keyset_full() - core._dispatch_keyset_full_after(_key("Python")) - _one("Python")
