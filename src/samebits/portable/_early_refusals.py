"""Refusals of the ops whose code runs before portable mode is asked (portable/_early_ops.py).

Each gets a kernel in front of that code, at the place of autograd, which every op with a tensor passes. Where
autograd is off altogether, in inference mode, the op comes to portable mode whole and its plan refuses it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from samebits._runtime.patching import Patches
from samebits._torch.core import is_virtual
from samebits._torch.kernel_overrides import KernelOverrides, can_override, op_named
from samebits.portable._devices import graph_keys
from samebits.portable._dispatch import is_portable
from samebits.portable._early_ops import computes_by_itself, early_ops
from samebits.portable._refusals import refuse_op

if TYPE_CHECKING:
    from collections.abc import Iterator

Refuse = Callable[[Any], None]
"""Called with the op: raises the refusal, or notes it."""


def refuse(op: Any) -> NoReturn:
    """Raise the refusal of an op."""
    raise refuse_op(op)


@contextlib.contextmanager
def early_ops_to(refuse: Refuse) -> Iterator[Callable[[], None]]:
    """Return a context in which these ops are refused, in threads that are in portable mode.

    Before torch 2.9 nothing can come in front of a composition. Then the functions of `torch` are replaced.

    Args:
        refuse: is called with the op.

    Returns:
        What to call when a library was loaded, whose ops are refused from then on.
    """
    with contextlib.ExitStack() as held:
        known: set[str] = set()

        def follow() -> None:
            names = early_ops() - known
            known.update(names)
            held.enter_context(_kernels(names, refuse).held())

        if can_override():
            follow()
            yield follow
        else:
            held.enter_context(_functions_to(refuse))
            yield lambda: None


def _kernels(names: frozenset[str], refuse: Refuse) -> KernelOverrides:
    return KernelOverrides({name: _kernel(name, refuse) for name in names}, *graph_keys().values())


def _kernel(name: str, refuse: Refuse) -> Callable[..., Any]:
    def run(otherwise: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, torch.Tensor)]
        if is_portable() and not any(map(is_virtual, tensors)):
            refuse(op_named(name))
        return otherwise()

    return run


@contextlib.contextmanager
def _functions_to(refuse: Refuse) -> Iterator[None]:
    patches = Patches()
    for name in filter(computes_by_itself, dir(torch)):
        patches.set(torch, name, _refusing(name, refuse))
    try:
        yield
    finally:
        patches.restore()


def _refusing(name: str, refuse: Refuse) -> Callable[..., Any]:
    function = getattr(torch, name)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        packet = getattr(torch.ops.aten, name)
        refuse(getattr(packet, packet.overloads()[0]))
        return function(*args, **kwargs)

    return call
