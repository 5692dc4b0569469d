"""The plans of ops that get or make complex numbers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.portable import can_decompose
from samebits.portable import ops
from samebits.portable._exact import moves_complex
from samebits.portable._handling import all_bits_of, check, chosen_once, decomposed
from samebits.portable._refusals import refuse_complex
from samebits.portable._registry import Handlers, declared_by, declared_complex, is_in_place
from samebits.portable._scan import VIRTUAL
from samebits.portable.kernels.complex_numbers import by_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.portable._registry import Handler


LINEAR = (
    *("_unsafe_index_put", "embedding_dense_backward", "index_copy", "index_put", "put", "scatter_add"),
    *(f"{kind}_pad{n}d_backward" for kind in ("reflection", "replication") for n in (1, 2, 3)),
    *("trace", "unfold_backward"),
)
"""Ops that are computed of the real parts, and of the imaginary parts, as of real numbers."""


@functools.cache
def complex_handlers() -> Handlers:
    """Return the handlers for calls with complex numbers."""
    of_reals = declared_by(ops.families())
    table: dict[str, Handler] = {name: functools.partial(by_parts, of_reals[name]) for name in LINEAR}
    table |= declared_complex(ops.families())
    return Handlers(table, lambda handler, name: _of_plain(handler, is_in_place(name)))


@functools.cache
def complex_plan(op: Any) -> Callable[..., Any]:
    """Return the function that runs when this op is called with complex numbers.

    Args:
        op: an `OpOverload`, or a higher-order op.
    """
    is_atens = getattr(op, "namespace", "") == "aten"
    handler = complex_handlers().get(op) if is_atens else None
    if handler is not None:
        return _handled(op, handler)
    if is_atens and moves_complex(op):
        return _passed(op)
    return decomposed(op) if can_decompose(op) else _refused(op)


def _handled(op: Any, handler: Handler) -> Callable[..., Any]:
    def choose(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Handler:
        if all_bits_of(op, args, kwargs) & VIRTUAL:
            return op  # type: ignore[no-any-return]
        check(op, args, kwargs)
        return handler

    return chosen_once(op, choose)


def _passed(op: Any) -> Callable[..., Any]:
    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:  # noqa: ARG001 - of every plan
        all_bits_of(op, args, kwargs)  # refuses arguments without portable values
        return op(*args, **kwargs)

    return run


def _refused(op: Any) -> Callable[..., Any]:
    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:  # noqa: ARG001 - of every plan
        if all_bits_of(op, args, kwargs) & VIRTUAL:
            return op(*args, **kwargs)
        raise refuse_complex(op)

    return run


def _of_plain(handler: Handler, in_place: bool) -> Handler:  # noqa: FBT001 - only called above
    """Return a handler of any tensors, from one of tensors that are not lazily conjugated or negated.

    Args:
        handler: of an op.
        in_place: it writes over its first argument, which then stays as it is.
    """

    def handle(*args: Any, **kwargs: Any) -> Any:
        kept = args[:in_place]
        named = {name: _plain(value) for name, value in kwargs.items()}
        return handler(*kept, *map(_plain, args[len(kept) :]), **named)

    return handle


def _plain(value: Any) -> Any:
    return value.resolve_conj().resolve_neg() if isinstance(value, torch.Tensor) else value
