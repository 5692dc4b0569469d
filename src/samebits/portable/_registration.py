"""Portable mode in torch's dispatcher: ops go to our kernels without a dispatch mode.

Ops that compute nothing go straight on to torch's kernels. Everything else comes here, ops that samebits has
never heard of among it, so that nothing computes that is neither portable nor refused.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from samebits._torch.dispatch_key import Registrations, composite_ops, inside, ops_taken_apart, outside
from samebits._torch.portable import op_of
from samebits.portable import ops
from samebits.portable._collectives import NAMESPACES as COLLECTIVE_NAMESPACES
from samebits.portable._exact import passing_ops
from samebits.portable._plans import Plans, handlers
from samebits.portable._registry import full_name

if TYPE_CHECKING:
    from collections.abc import Callable


class Registration:
    """Portable mode of the thread that enters it, and of threads of autograd that work for it."""

    def __init__(self) -> None:
        self._guards: list[Any] = []

    def __enter__(self) -> Registration:
        register()
        guard = inside()
        guard.__enter__()
        self._guards.append(guard)
        return self

    def __exit__(self, *error: object) -> None:
        self._guards.pop().__exit__(None, None, None)


@functools.cache
def register() -> Registrations:
    """Register the kernels, once in a process."""
    registrations = Registrations()
    passing = passing_ops() - ops_taken_apart()
    registrations.catch_all(run_op)
    named = {full_name(op) for op in handlers(ops.families())}
    for name in (composite_ops() | named) - passing:
        registrations.set(name, _kernel(name))
    for name in passing:
        registrations.pass_on(name)
    for namespace in COLLECTIVE_NAMESPACES:
        for name in composite_ops(namespace):
            registrations.set_outside_aten(namespace, name, _kernel(name, namespace))
    return registrations


def run_op(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an op by its plan; torch calls this.

    Args:
        op: an `OpOverload`.
        *args: its arguments.
        **kwargs: those by name.
    """
    with outside():
        return _plans().run(op, args, kwargs, Registration())


def _kernel(name: str, namespace: str = "aten") -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        return run_op(_op(name, namespace), *args, **kwargs)

    return run


@functools.cache
def _op(name: str, namespace: str) -> Any:
    return op_of(name, namespace)  # at the first call: to make all of them takes a tenth of a second


@functools.cache
def _plans() -> Plans:
    return Plans()
