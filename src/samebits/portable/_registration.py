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
from samebits.portable._devices import device_types
from samebits.portable._early_ops import early_ops
from samebits.portable._exact import COMPUTED_FACTORIES, base_of, passing_ops
from samebits.portable._loaded_libraries import Libraries
from samebits.portable._native_ops import native_kernel, native_ops, switch
from samebits.portable._plans import Plans
from samebits.portable._refusals import refuse_tensor
from samebits.portable._whole_ops import whole_ops

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Registration:
    """Portable mode of the thread that enters it, and of threads of autograd that work for it.

    Args:
        again: whether it was entered before, by this thread or another, so that all is registered.
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
    for name in passing_ops() - ops_taken_apart() - native_ops():
        registrations.pass_on(name)
    for name in factory_ops():
        if base_of(name) in COMPUTED_FACTORIES:
            registrations.set_factory(name, _Kernel(name))
    registrations.set_on_devices(_refuse_device, but=device_types())
    for name in whole_ops():
        registrations.set(f"aten::{name}", _Kernel(f"aten::{name}"))
    for name in native_ops():
        registrations.set(name, native_kernel(name, _Kernel(name)))
    return registrations


def _refuse_device(name: str, *_: Any, **kwargs: Any) -> Any:
    raise refuse_tensor(op_named(name), f"device={kwargs.get('device')}")


def close_composites(registrations: Registrations) -> None:
    """Catch the ops that `catch_all` does not reach, of libraries that were loaded meanwhile too."""
    for name in composite_ops() | early_ops():
        registrations.set(name, _Kernel(name))


@contextlib.contextmanager
def following_libraries(follow: Callable[[], None]) -> Iterator[None]:
    """Return a context in which ops of C++ libraries are caught when they are loaded, in all threads.

    Args:
        follow: is called then, too.
    """
    patches, libraries = Patches(), Libraries()
    for owner, name in ((ExtensionFileLoader, "exec_module"), (torch.ops, "load_library")):
        patches.set(owner, name, _then_closed(getattr(owner, name), libraries, follow))
    try:
        yield
    finally:
        patches.restore()


def _then_closed(
    load: Callable[..., Any], libraries: Libraries, follow: Callable[[], None]
) -> Callable[..., Any]:
    @functools.wraps(load)
    def load_and_close(*args: Any, **kwargs: Any) -> Any:
        loaded = load(*args, **kwargs)
        if libraries.has_more_for_torch():
            if register.cache_info().currsize:  # else it will be, and may be loading this
                close_composites(register())
            follow()
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


class _Kernel:
    """Runs the op of a name, which is made at the first call: to make all of them takes a tenth of a second.

    Args:
        name: such as `aten::mm`.
    """

    __slots__ = ("_name", "_op")

    def __init__(self, name: str) -> None:
        self._name, self._op = name, None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._op is None:
            self._op = op_named(self._name)
        return run_op(self._op, *args, **kwargs)


@functools.cache
def _plans() -> Plans:
    return Plans()
