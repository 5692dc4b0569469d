"""A place of our own in torch's dispatcher: below autograd and every dispatch mode, above the CPU's kernels.

A *dispatch key* is such a place. torch keeps this one for random number generators of other packages and
registers nothing there itself (c10/core/DispatchKey.h, `CustomRNGKeyId`, 2.6.0 to 2.15.0). A thread goes there
while the key is among those that it includes; torch hands these on to the threads of autograd.

Where a name is missing, `can_register` says no, and portable mode is a dispatch mode.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

_KEY = "CustomRNGKeyId"
_LEFT_OUT = ("Sparse", "SparseCsr", "NestedTensor", "MkldnnCPU", "Quantized")
"""Kinds of tensors whose kernels torch would choose before ours: threads that are inside go past them."""
_NAMES = (
    "_ForceDispatchKeyGuard",
    "_dispatch_get_registrations_for_dispatch_key",
    "_dispatch_key_parse",
    "_dispatch_keyset_full",
    "_dispatch_keyset_full_after",
    "_dispatch_tls_local_exclude_set",
    "_dispatch_tls_local_include_set",
)
_WHOLE = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
_TAKEN_APART = "CompositeImplicitAutograd"


@functools.cache
def can_register() -> bool:
    """Tell whether this torch has all that `Registrations` needs."""
    if not all(hasattr(torch._C, name) for name in _NAMES):
        return False
    library: Any = torch.library.Library
    return hasattr(library, "fallback")


class Registrations:
    """Kernels at the key, which every op reaches in threads that are inside (`inside`).

    They stay registered until the process ends. A thread that is not inside never meets them.
    """

    def __init__(self) -> None:
        library: Any = torch.library.Library
        self._aten = library("aten", "IMPL")
        self._all = library("_", "IMPL")
        self._others: dict[str, Any] = {}

    def catch_all(self, kernel: Callable[..., Any]) -> None:
        """Have all ops, of every namespace and those that are registered later, call a function.

        Args:
            kernel: called with the `OpOverload` and its arguments.
        """
        self._all.fallback(kernel, _KEY)

    def set(self, name: str, kernel: Callable[..., Any]) -> None:
        """Have an op of aten call a function with its arguments.

        Args:
            name: without `aten::`.
            kernel: the function.
        """
        self._aten.m.impl(name, _KEY, kernel, False)

    def set_outside_aten(self, namespace: str, name: str, kernel: Callable[..., Any]) -> None:
        """Have an op of another namespace call a function with its arguments.

        Args:
            namespace: such as `_c10d_functional`.
            name: without the namespace.
            kernel: the function.
        """
        library: Any = torch.library.Library
        if namespace not in self._others:
            self._others[namespace] = library(namespace, "IMPL")
        self._others[namespace].m.impl(name, _KEY, kernel, False)

    def pass_on(self, name: str) -> None:
        """Let an op go on to torch's own kernel as if the key was not there.

        Args:
            name: without `aten::`.
        """
        self._aten.m.impl(name, _KEY, torch.library.fallthrough_kernel, False)


def composite_ops(namespace: str = "aten") -> frozenset[str]:
    """Return the ops of a namespace that torch would make of others at the key, without the namespace."""
    return _registered(*_WHOLE, namespace=namespace)


def ops_taken_apart() -> frozenset[str]:
    """Return the ops of aten that torch makes of others before they come to any kernel, without `aten::`."""
    return _registered(_TAKEN_APART)


def _registered(*aliases: str, namespace: str = "aten") -> frozenset[str]:
    listed: Any = torch._C._dispatch_get_registrations_for_dispatch_key
    names = [name.partition("::") for alias in aliases for name in listed(alias)]
    return frozenset(name for space, _, name in names if space == namespace)


def inside() -> AbstractContextManager[object]:
    """Return a context, to be entered once, in which ops of this thread go to the kernels of `Registrations`."""
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
