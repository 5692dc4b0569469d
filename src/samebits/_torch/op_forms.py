"""The forms of an op: it returns its result, or writes it into an argument or into tensors given for it.

`OpOverload._schema` is what torch's own tools read (torch/_library/utils.py, 2.13.0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


def forms_of(name: str, key: str) -> tuple[str, ...]:
    """Return an op and its other forms, in place and into given tensors, where torch has a kernel for them.

    Args:
        name: of the op, such as `histc` or `scatter.reduce`.
        key: the place in the dispatcher.

    Returns:
        Names such as `histc.out`; nothing if this torch does not have the op.
    """
    wanted = _overload(name)
    if wanted is None:
        return ()
    base = name.partition(".")[0].removesuffix("_")
    packets = [(packet, getattr(torch.ops.aten, packet, None)) for packet in (base, f"{base}_")]
    every = (
        (packet if overload == "default" else f"{packet}.{overload}", getattr(ops, overload))
        for packet, ops in packets
        if ops is not None
        for overload in ops.overloads()
    )
    taken = _taken(wanted)
    has_kernel: Any = torch._C._dispatch_has_kernel_for_dispatch_key
    return tuple(form for form, op in every if _taken(op) == taken and has_kernel(f"aten::{form}", key))


def _overload(name: str) -> Any:
    base, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, base, None), overload or "default", None)


def _taken(op: Any) -> list[tuple[str, str]]:
    """Return the parameters and their types, but for those that the result is written into."""
    return [(each.name, str(each.type)) for each in op._schema.arguments if not each.is_out]


def delivery_of(name: str) -> Callable[[tuple[Any, ...], dict[str, Any], Any], Any]:
    """Return a function that delivers a result as the form of an op does.

    Args:
        name: of the form.

    Returns:
        Called with the arguments, those by name (from which it takes the tensors that the result is written
        into), and the result.
    """
    outs, first = outputs_of(name), _overload(name)._schema.arguments[0]
    in_place = not outs and first.alias_info is not None and first.alias_info.is_write

    def deliver(args: tuple[Any, ...], given: dict[str, Any], result: Any) -> Any:
        if in_place:
            return args[0] if result is args[0] else args[0].copy_(result)
        if not outs:
            return result
        results = result if isinstance(result, tuple) else (result,)
        written = tuple(_written(given[out], each) for out, each in zip(outs, results, strict=True))
        return written if len(written) > 1 else written[0]

    return deliver


def outputs_of(name: str) -> tuple[str, ...]:
    """Return the names of the tensors that a form of an op writes its result into."""
    return tuple(argument.name for argument in _overload(name)._schema.arguments if argument.is_out)


def _written(out: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    if out.dtype != result.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {result.dtype}, but got {out.dtype} instead")
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)
