"""Which function stands for which op of torch.

A family of ops gives a table: name of the op (`mm`, or `mm.dtype` for an overload that is not the default)
to a function with the parameters of its schema. Made from that here: the in-place op (`mm_`), the one with
`out`, and what happens to float16 and bfloat16.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from samebits.torch_private_portable import arguments_of

Handler = Callable[..., Any]
Table = Mapping[str, Handler]
LOW_PRECISION = frozenset({torch.float16, torch.bfloat16})
_OF_FACTORIES = ("dtype", "layout", "device", "pin_memory")
_OWN_ROUNDING = "samebits_own_rounding"


def rounds_itself(handler: Handler) -> Handler:
    """Mark a handler that takes float16 and bfloat16 as they are, and rounds its results itself."""
    setattr(handler, _OWN_ROUNDING, True)
    return handler


def is_rounding_itself(handler: Handler) -> bool:
    """Whether `rounds_itself` marks it."""
    return getattr(handler, _OWN_ROUNDING, False)


def resolve(table: Table) -> dict[Any, Handler]:
    """The handlers by `OpOverload`; ops that this torch does not have are left out.

    Args:
        table: names of ops to handlers.
    """
    found: dict[Any, Handler] = {}
    for name, handler in table.items():
        op = _find(name)
        if op is not None:
            found[op] = handler
    for name, handler in table.items():
        for op, derived in _variants(name, handler):
            found.setdefault(op, derived)
    return found


def without_out(op: Any) -> Any | None:
    """The op that gives what one with `out` writes: `softmax.int` for `softmax.int_out`; None without one.

    Args:
        op: an `OpOverload`.
    """
    if not _out_names(op):
        return None
    packet = op.overloadpacket
    for overload in packet.overloads():
        base = getattr(packet, overload)
        if not _out_names(base) and _inputs(op) in (_inputs(base), _inputs(base, _OF_FACTORIES)):
            return base
    return None


def merge(tables: Iterable[Table]) -> Table:
    """All tables as one.

    Raises:
        ValueError: if two of them have the same op.
    """
    merged: dict[str, Handler] = {}
    for table in tables:
        twice = merged.keys() & table.keys()
        if twice:
            raise ValueError(f"two handlers for {sorted(twice)}")
        merged.update(table)
    return merged


def is_in_place(name: str) -> bool:
    """Whether an op of a table writes over its first argument: `pow_.Scalar`."""
    return name.partition(".")[0].endswith("_")


def _find(name: str) -> Any | None:
    packet_name, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, packet_name, None)
    return getattr(packet, overload or "default", None)


def _variants(name: str, handler: Handler) -> Iterable[tuple[Any, Handler]]:
    in_place = _in_place(name)
    if in_place is not None:
        yield in_place, _make_in_place(handler)
    for op in _with_out(name):
        yield op, writing(handler, op, _find(name))


def _with_out(name: str) -> Iterable[Any]:
    """The ops that take the same inputs, and what the result is written to: `sum.IntList_out`."""
    base = _find(name)
    if base is None or _out_names(base):
        return
    packet = getattr(torch.ops.aten, name.partition(".")[0])
    for overload in packet.overloads():
        op = getattr(packet, overload)
        if _out_names(op) and _inputs(op) == _inputs(base):
            yield op


def _in_place(name: str) -> Any | None:
    """The op in place with the same types of arguments: that of `pow.Tensor_Scalar` is `pow_.Scalar`."""
    base, _, overload = name.partition(".")
    op, packet = _find(name), getattr(torch.ops.aten, f"{base}_", None)
    if op is None or packet is None:
        return None
    wanted = _types(op)
    named = getattr(packet, overload or "default", None)
    others = (getattr(packet, other) for other in packet.overloads())
    fitting = [one for one in (named, *others) if one is not None and _types(one) == wanted]
    if fitting:
        return fitting[0]
    return named if named is not None and _types(named)[:1] == wanted[:1] else None


def _types(op: Any) -> list[str]:
    return [str(argument.type) for argument in arguments_of(op)]


def _inputs(op: Any, less: Iterable[str] = ()) -> list[tuple[str, str]]:
    arguments = (
        argument for argument in arguments_of(op) if not argument.is_out and argument.name not in less
    )
    return [(argument.name, str(argument.type)) for argument in arguments]


def _out_names(op: Any) -> tuple[str, ...]:
    return tuple(argument.name for argument in arguments_of(op) if argument.is_out)


def _make_in_place(handler: Handler) -> Handler:
    @functools.wraps(handler)
    def in_place(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return self.copy_(handler(self, *args, **kwargs))

    return in_place


def writing(handler: Handler, op: Any, base: Any) -> Handler:
    """The handler of an op with `out`, made from that of the op without.

    Args:
        handler: of the op without.
        op: the op with `out`.
        base: the op without.
    """
    names = _out_names(op)
    takes_dtype = len(names) == 1 and any(argument.name == "dtype" for argument in arguments_of(base))

    @functools.wraps(handler)
    def into(*args: Any, **kwargs: Any) -> Any:
        outs = tuple(kwargs.pop(name) for name in names)
        if takes_dtype and kwargs.get("dtype") is None:
            kwargs["dtype"] = outs[0].dtype  # what torch computes in then
        result = handler(*args, **kwargs)
        for out, value in zip(outs, result if isinstance(result, tuple) else (result,), strict=True):
            if not torch.can_cast(value.dtype, out.dtype):
                raise RuntimeError(f"result type {value.dtype} can't be cast to {out.dtype}, the type of out")
            out.resize_(value.shape).copy_(value)
        return outs[0] if len(outs) == 1 else outs

    return into
