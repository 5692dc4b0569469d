"""Ordered accumulation ("Accumulation" in docs/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable.arrays import as_array
from samebits.portable.native import load

if TYPE_CHECKING:
    from torch import Tensor

KINDS = ("add", "multiply", "largest", "smallest", "set")


def accumulate_(out: Tensor, index: Tensor, src: Tensor, kind: str = "add", *, skip: bool = False) -> Tensor:
    """For m ascending: `out[n, index[n, m, c], c]` takes `src[n, m, c]`.

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
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.accumulate import accumulate as reference

        _check(bool(((index >= out.shape[1]) | (index < (-1 if skip else -out.shape[1]))).any()))
        reference(as_array(out), as_array(index), as_array(src), kind, skip=skip)
        return out
    if src.numel():
        bad = torch.empty(1, dtype=torch.int64)
        kernels.call("accumulate", (*_words(out, index, src, kind), bad.data_ptr(), int(skip)))
        _check(bool(bad))
    return out


def _check(bad: bool) -> None:
    if bad:
        raise IndexError("index out of range in self")


def _words(out: Tensor, index: Tensor, src: Tensor, kind: str) -> tuple[int, ...]:
    batch, rows, columns = out.shape
    addresses = (out.data_ptr(), src.data_ptr(), index.data_ptr())
    sizes = (batch, rows, columns, src.shape[1])
    # A stride says whether values are shared, so that of a dimension of size 1 must not count.
    shape, strides = src.shape, (src.stride(), index.stride())
    plain = [0 if size == 1 else step for steps in strides for size, step in zip(shape, steps, strict=True)]
    is_f64 = int(out.dtype == torch.float64)
    return (is_f64, KINDS.index(kind), *addresses, *sizes, *plain)
