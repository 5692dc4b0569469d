"""Products of groups of rows, each with a matrix of its own, as layers of experts have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles, raised, rounds_itself
from samebits.portable.kernels.gemm import gemm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor


_ROW_BYTES = 16
"""torch's rows begin at multiples of it, as it asks of the inputs, which the result may be next."""


@handles("aten::_grouped_mm")
@rounds_itself
def grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Compute `aten::_grouped_mm`: `offs` has the ends of the groups; outside of them the result is +0."""
    del bias, out_dtype  # torch takes no bias, and no other dtype than that of self
    left, right = raised(self), raised(mat2)
    if offs is None:
        return _in_padded_rows(gemm(left, right), self.dtype)
    bounds = [*_bounds(offs)]
    if self.dim() == mat2.dim():
        groups = [gemm(left[:, at], right[at]) for at in bounds]
        shape = (len(groups), self.shape[0], mat2.shape[1])
        return _in_padded_rows(torch.stack(groups) if groups else left.new_zeros(shape), self.dtype)
    by_rows = self.dim() == 2
    product = left.new_zeros(self.shape[-2], mat2.shape[-1])
    for group, at in enumerate(bounds):
        if by_rows:
            product[at] = gemm(left[at], right[group])
        else:
            product[:, at] = gemm(left[group], right[:, at])
    return _in_padded_rows(product, self.dtype)


def _bounds(offs: Tensor) -> Iterator[slice]:
    start = 0
    for end in offs.tolist():
        yield slice(start, end)
        start = end


def _in_padded_rows(product: Tensor, dtype: torch.dtype) -> Tensor:
    step = _ROW_BYTES // dtype.itemsize
    *leading, columns = product.shape
    rows = product.new_empty((*leading, -(-columns // step) * step), dtype=dtype)[..., :columns]
    return rows.copy_(product)
