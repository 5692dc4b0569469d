"""The `_foreach_` ops: the op of one tensor, for each tensor of the lists in turn.

So torch does it on the CPU (ATen/native/ForeachOpsKernels.cpp, the `_slow` functions), and so a loop over
tensors, a `_foreach_` op and an optimizer's `foreach=True` give the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits.torch_private_portable import (
    arguments_of,
    is_mutable,
    overload_name,
    returns_nothing,
    schema_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.portable.registry import Handler

    Repeat = Callable[[Handler, tuple[Any, ...], dict[str, Any]], Any]

_PREFIX = "_foreach_"
_OVERLOADS = {
    "default": ("default",),
    "Scalar": ("Tensor_Scalar", "Scalar", "default"),
    "ScalarList": ("Tensor_Scalar", "Scalar", "default"),
    "List": ("Tensor", "Tensor_Tensor", "default"),
    "Tensor": ("Tensor", "default"),
    "ScalarAndTensor": ("Scalar",),
}
_CLAMPS = {"maximum": "clamp_min", "minimum": "clamp_max"}
_HAVE_VALUE = ("addcmul", "addcdiv")
_NAMES = frozenset(
    word
    for line in (
        "abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min clone copy cos cosh div erf erfc",
        "exp expm1 floor frac lerp lgamma log log10 log1p log2 max maximum minimum mm mul neg norm pow",
        "reciprocal round rsqrt sigmoid sign sin sinh sqrt sub tan tanh trunc zero",
    )
    for word in line.split()
)
_LISTS = ("List[Tensor]", "List[number]")


def single_op(op: Any) -> Any | None:
    """The op of one tensor that a `_foreach_` op repeats, None if there is none.

    For an op in place that only exists as one that gives a new tensor (`maximum`), it is that.

    Args:
        op: any op.
    """
    packet_name, overload = schema_name(op).partition(_PREFIX)[2], overload_name(op)
    base = packet_name.rstrip("_")
    in_place = packet_name[len(base) :]
    if base not in _NAMES or overload not in _OVERLOADS:
        return None
    if base in {"copy", "zero"} and not in_place:
        return None
    if base == "norm":
        return torch.ops.aten.linalg_vector_norm.default
    if overload.startswith("Scalar"):
        base = _CLAMPS.get(base, base)
    packets = [getattr(torch.ops.aten, name, None) for name in dict.fromkeys((base + in_place, base))]
    overloads = _OVERLOADS[overload]
    candidates = (getattr(packet, candidate, None) for packet in packets for candidate in overloads)
    return next((candidate for candidate in candidates if candidate is not None), None)


def for_each(op: Any) -> Repeat:
    """What a `_foreach_` op does: a function of what stands for the op of one tensor, and of its arguments.

    Args:
        op: the op.
    """
    arguments = arguments_of(op)
    listed = [str(argument.type) in _LISTS for argument in arguments]
    name = schema_name(op).partition(_PREFIX)[2]
    gives_nothing = returns_nothing(op)
    single: Any = single_op(op)
    copies = gives_nothing and not is_mutable(single)

    def repeat(function: Handler, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name.startswith(_HAVE_VALUE):
            args = _with_value_list(args, kwargs)
        count = next(len(arg) for arg, many in zip(args, listed, strict=False) if many)
        results = []
        for i in range(count):
            given = [arg[i] if _is_list(arg) else arg for arg in args]
            result = _call(function, name, given, kwargs)
            results.append(given[0].copy_(result) if copies else result)
        return None if gives_nothing else results

    return repeat


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _with_value_list(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The factor of addcmul and addcdiv last, a tensor of factors as a list of numbers."""
    value = kwargs.pop("value", kwargs.pop("scalars", args[3] if len(args) > 3 else 1))
    return (*args[:3], value.tolist() if isinstance(value, torch.Tensor) else value)


def _call(function: Handler, name: str, given: list[Any], kwargs: dict[str, Any]) -> Any:
    if name.startswith(_HAVE_VALUE):
        return function(*given[:3], value=given[3])
    if name.startswith("norm"):
        order = given[1] if len(given) > 1 else kwargs.get("ord", 2)
        dtype = given[2] if len(given) > 2 else kwargs.get("dtype")
        return function(given[0], order, None, False, dtype=dtype)
    return function(*given, **kwargs)
