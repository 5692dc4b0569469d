"""Reductions over ranks, in the order of ranks ("Collectives" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch

from samebits.portable._tensors import LOW_PRECISION, REAL, raised

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

_FLOATS = REAL | LOW_PRECISION
_INTEGERS = frozenset({torch.uint8, torch.int8, torch.int32, torch.int64, torch.bool})  # those of gloo


_STEPS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "SUM": torch.add,
    "AVG": torch.add,
    "PRODUCT": torch.mul,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
    "BAND": torch.bitwise_and,
    "BOR": torch.bitwise_or,
    "BXOR": torch.bitwise_xor,
}
_ON_BITS = ("BAND", "BOR", "BXOR")


def can_reduce(name: str, dtype: torch.dtype) -> bool:
    """Tell whether a reduction is defined for a dtype.

    Args:
        name: such as `SUM`.
        dtype: of the tensors.
    """
    if name in _ON_BITS:
        return dtype in _INTEGERS
    if name == "AVG":
        return dtype in _FLOATS
    return name in _STEPS and (dtype in _FLOATS or dtype in _INTEGERS)


def reduced(name: str, parts: Sequence[Tensor]) -> Tensor:
    """Reduce the tensors of all ranks element by element: ((r0 + r1) + r2) + ...

    Args:
        name: of a reduction that `can_reduce` their dtype.
        parts: a tensor of each rank, in the order of ranks; one dtype and shape.

    Returns:
        the same shape and dtype, new memory.
    """
    dtype = parts[0].dtype
    total = functools.reduce(_STEPS[name], map(raised, parts[1:]), raised(parts[0]))
    if name == "AVG":
        total = total / len(parts)
    if name in {"MIN", "MAX"} and dtype in _FLOATS:
        total = total + 0.0  # a zero is +0
    return total.to(dtype, copy=len(parts) == 1)
