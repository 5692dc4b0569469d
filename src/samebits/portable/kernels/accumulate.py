"""Ordered accumulation ("Accumulation" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.portable.backends import backend_of

if TYPE_CHECKING:
    from torch import Tensor

KINDS = ("add", "multiply", "largest", "smallest", "set")


def accumulate_(out: Tensor, index: Tensor, src: Tensor, kind: str = "add", *, skip: bool = False) -> Tensor:
    """Let `out[n, index[n, m, c], c]` take `src[n, m, c]`, for ascending m.

    Args:
        out: (batch, rows, columns), float32 or float64, contiguous; changed in place.
        index: (batch, m, columns), int64, rows of `out`, negative ones from the end; any strides, 0 where it
            is shared.
        src: (batch, m, columns), the dtype of `out`, any strides.
        kind: one of `KINDS`.
        skip: whether -1 stands for no row, its source left out.

    Returns:
        `out`.

    Raises:
        IndexError: if an index is no row of `out`.
    """
    if not backend_of(out).accumulate(out, index, src, kind, skip=skip):
        raise IndexError("index out of range in self")
    return out
