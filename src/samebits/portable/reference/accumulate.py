"""Ordered accumulation: one source after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array


def accumulate(out: Array, index: Array, src: Array, kind: str, *, skip: bool) -> None:
    """Let `out[n, index[n, m, c], c]` take `src[n, m, c]`, for ascending m.

    Args:
        out: (batch, rows, columns), float32 or float64; changed in place.
        index: (batch, m, columns), int64.
        src: (batch, m, columns), the dtype of `out`.
        kind: `add`, `multiply`, `largest`, `smallest` or `set`.
        skip: whether -1 stands for no row; else negative indices count from the end.
    """
    for n, m, c in np.ndindex(src.shape):
        row = index[n, m, c]
        if row >= 0 or not skip:
            with np.errstate(all="ignore"):
                out[n, row, c] = _taken(out[n, row, c], src[n, m, c], kind)


def _taken(old: Array, new: Array, kind: str) -> Array:
    if kind == "add":
        return old + new
    if kind == "multiply":
        return old * new
    if kind == "set" or np.isnan(new):
        return new
    return new if (new > old if kind == "largest" else new < old) else old
