"""Portable mode in torch's dispatcher: ops go to our kernels without a dispatch mode.

Ops that compute nothing go straight on to torch's kernels. Everything else comes here, ops that samebits has
never heard of among it, so that nothing computes that is neither portable nor refused.
"""

from __future__ import annotations

import contextlib
import functools
from importlib.machinery import ExtensionFileLoader
from typing import TYPE_CHECKING, Any

import torch

from samebits._runtime.patching import Patches
from samebits._torch.dispatch_key import Registrations, composite_ops, factory_ops, inside, ops_taken_apart
from samebits._torch.portable import op_named
from samebits.portable import lstm_layers
from samebits.portable._exact import COMPUTED_FACTORIES, base_of, passing_ops
from samebits.portable._native_ops import native_kernel, native_ops, switch
from samebits.portable._plans import Plans
from samebits.portable._refusals import refuse_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LSTM = f"aten::{lstm_layers.OP}"


class Registration:
    """Portable mode of the thread that enters it, and of threads of autograd that work for it.

    Args:
        again: whether it is entered inside itself, so that there is nothing to register.
    """

    def __init__(self, *, again: bool = False) -> None:
        self._again = again
        self._guards: list[Any] = []

    def __enter__(self) -> None:
        if not self._again:
            close_composites(register())
        guard = inside()
        guard.__enter__()
        self._guards.append(guard)

    def __exit__(self, *error: object) -> None:
        self._guards.pop().__exit__(None, None, None)


@functools.cache
def register() -> Registrations:
    """Register the kernels, once in a process."""
    registrations = Registrations()
    switch()
    registrations.catch_all(run_op)
    for name in passing_ops() - ops_taken_apart():
        registrations.pass_on(name)
    for name in factory_ops():
        if base_of(name) in COMPUTED_FACTORIES:
            registrations.set_factory(name, _kernel(name))
    registrations.set_on_devices(_refuse_device)
    registrations.set(LSTM, _kernel(LSTM))  # which torch would make of others before it comes here
    for name in native_ops():
        registrations.set(name, native_kernel(name, _kernel(name)))
    return registrations


def _refuse_device(name: str, *_: Any, **kwargs: Any) -> Any:
    raise refuse_tensor(op_named(name), f"device={kwargs.get('device')}")


def close_composites(registrations: Registrations) -> None:
    """Catch the ops that `catch_all` does not reach, of libraries that were loaded meanwhile too."""
    for name in composite_ops():
        registrations.set(name, _kernel(name))


@contextlib.contextmanager
def following_libraries() -> Iterator[None]:
    """Return a context in which ops of C++ libraries are caught when they are loaded, in all threads."""
    patches = Patches()
    for owner, name in ((ExtensionFileLoader, "exec_module"), (torch.ops, "load_library")):
        patches.set(owner, name, _then_closed(getattr(owner, name)))
    try:
        yield
    finally:
        patches.restore()


def _then_closed(load: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(load)
    def load_and_close(*args: Any, **kwargs: Any) -> Any:
        loaded = load(*args, **kwargs)
        if register.cache_info().currsize:  # else it will be, and may be loading this
            close_composites(register())
        return loaded

    return load_and_close


def run_op(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an op by its plan; torch calls this.

    Args:
        op: an `OpOverload`.
        *args: its arguments.
        **kwargs: those by name.
    """
    leave, return_to = switch()
    before = leave()
    try:
        return _plans().run(op, args, kwargs, Registration(again=True))
    finally:
        return_to(before)


def _kernel(name: str) -> Callable[..., Any]:
    @functools.cache
    def op() -> Any:  # at the first call: to make all of them takes a tenth of a second
        return op_named(name)

    def run(*args: Any, **kwargs: Any) -> Any:
        return run_op(op(), *args, **kwargs)

    return run


@functools.cache
def _plans() -> Plans:
    return Plans()
