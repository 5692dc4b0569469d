"""Calls of ops that have a handler: behind torch's own checks, each with what computes for such arguments.

What is found out about shapes and dtypes is remembered for the life of the process, not of a mode.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from samebits.errors import SamebitsError
from samebits.hooks.interruptions import pass_on
from samebits.portable.arguments import check, raise_as_torch
from samebits.portable.refusals import refuse_tensor
from samebits.portable.scan import FLOATS, LOW, VIRTUAL, UnfitError, call_signature, scan, scan_named
from samebits.torch_private_portable import gives_no_contents, tracer, without_tracer

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from samebits.portable.registry import Handler

KEPT = 512  # signatures that are remembered of one op


@functools.cache
def handled(op: Any, handler: Handler, low: Handler, *, integers: bool) -> Callable[..., Any]:
    """The plan (plans.py) of an op.

    Args:
        op: the `OpOverload`.
        handler: stands for it in float32 and float64.
        low: stands for it where float16 or bfloat16 is among the dtypes.
        integers: whether torch's own op is exact where there is no float.
    """
    known: dict[Hashable, Handler] = {}

    def choose(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Handler:
        bits = bits_of(op, args, kwargs)
        if bits & VIRTUAL or (integers and not bits & FLOATS and not has_float_number(args, kwargs)):
            return op  # type: ignore[no-any-return]
        check(op, args, kwargs)
        return low if bits & LOW else handler

    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:
        tracing = tracer()
        if tracing is not None:
            return traced(tracing, op, (args, kwargs), mode)
        like = call_signature(args, kwargs)
        compute = known.get(like)
        if compute is None:
            compute = choose(args, kwargs)
            if len(known) >= KEPT:
                known.clear()
            known[like] = compute
        return op(*args, **kwargs) if compute is op else computed(op, compute, args, kwargs)

    return run


def traced(tracing: Any, op: Any, given: tuple[tuple[Any, ...], dict[str, Any]], mode: Any) -> Any:
    """What an op gives while torch traces: the graph gets the op itself, and what it consists of is computed.

    Args:
        tracing: torch's mode.
        op: the `OpOverload`.
        given: its arguments, and those by name.
        mode: of portable mode, asked again by what `tracing` calls.
    """
    args, kwargs = given
    if gives_no_contents(tracing):
        return op(*args, **kwargs)
    with without_tracer(tracing), mode:
        return tracing.__torch_dispatch__(op, (), args, kwargs)


def computed(op: Any, handler: Handler, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a handler gives; an error of its own is told as torch tells it.

    Args:
        op: the `OpOverload` that it stands for.
        handler: computes.
        args: of the op, checked.
        kwargs: those by name.
    """
    try:
        return handler(*args, **kwargs)
    except SamebitsError:
        raise
    except Exception as error:  # noqa: BLE001 - one of its mistakes is no error of the script
        pass_on(error)
        raise_as_torch(op, args, kwargs, error)


def bits_of(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """What `scan` says of all arguments.

    Raises:
        SamebitsError: for one that portable mode has no values for.
    """
    try:
        return scan(args) | scan_named(kwargs) if kwargs else scan(args)
    except UnfitError as unfit:
        raise refuse_tensor(op, str(unfit)) from None


def has_float_number(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a Python float is among the arguments, lists not included."""
    return float in map(type, args) or float in map(type, kwargs.values())
