"""What an op of torch is to portable mode, by its name, and by its arguments where these decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from samebits.portable.exact.names import EXACT, INTEGERS, MOVES
from samebits.torch_private_portable import overload_name, schema_name

Condition = Callable[[tuple[Any, ...], dict[str, Any]], bool]

_KINDS = {
    **dict.fromkeys(MOVES, "move"),
    **dict.fromkeys(EXACT, "exact"),
}


@dataclass(frozen=True)
class Standing:
    """What torch's own op is good for.

    Args:
        kind: `move`, `exact`; None if its floats are not the same everywhere.
        condition: whether that holds for these arguments; None if it always does.
        integers: whether it is exact when everything is an integer or a bool.
    """

    kind: str | None
    condition: Condition | None
    integers: bool


def base_name(op: Any) -> str:
    """The name that the op, its in-place op and its ops with `out` have in common: `mul` for `aten::mul_`."""
    name = schema_name(op).partition("::")[2]
    in_place = name.endswith("_") and not name.endswith("__")
    return name[:-1] if in_place else name


def standing_of(op: Any) -> Standing:
    """What is known of an op of torch.

    Args:
        op: an `OpOverload` of the namespace `aten`.
    """
    name = base_name(op)
    overload = f"{name}.{overload_name(op).removesuffix('_out')}"
    if overload in _OTHER_OVERLOADS:
        return Standing(None, None, overload in _INTEGER_OVERLOADS)
    kind = "move" if name in _MOVES_UNLESS_ROUNDED else _KINDS.get(name)
    return Standing(kind, _CONDITIONS.get(name), name in INTEGERS)


def _plain_alpha(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:  # noqa: ARG001
    return not kwargs or bool(kwargs.get("alpha", 1) == 1)


def _rsub(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return bool((args[2] if len(args) > 2 else kwargs.get("alpha", 1)) == 1)


def _no_rounding_copy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    source = args[1] if len(args) > 1 else kwargs["src"]
    return not source.dtype.is_floating_point or not _is_integral(args[0].dtype)


def _no_rounding_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    dtype = kwargs.get("dtype")
    return dtype is None or not _is_integral(dtype) or not args[0].dtype.is_floating_point


def _is_integral(dtype: torch.dtype) -> bool:
    return not dtype.is_floating_point and not dtype.is_complex and dtype is not torch.bool


_MOVES_UNLESS_ROUNDED = frozenset({"_to_copy", "copy"})
_CONDITIONS: dict[str, Condition] = {
    "add": _plain_alpha,
    "sub": _plain_alpha,
    "rsub": _rsub,
    "copy": _no_rounding_copy,
    "_to_copy": _no_rounding_to,
}

# Overloads that compute more than the others of their name.
_INTEGER_OVERLOADS = frozenset({"scatter.reduce", "scatter.value_reduce"})
_OTHER_OVERLOADS = _INTEGER_OVERLOADS | {"round.decimals", "view.dtype", "view_copy.dtype"}
