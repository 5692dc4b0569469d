"""Matrix products ("Contractions" in docs/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable.native import load

if TYPE_CHECKING:
    from torch import Tensor


def gemm(a: Tensor, b: Tensor) -> Tensor:
    """`a @ b` for matrices, or for batches of them.

    Args:
        a: (m, k) or (batch, m, k), float32 or float64, any strides.
        b: (k, n) or (batch, k, n), the same dtype.

    Returns:
        (m, n) or (batch, m, n), contiguous.
    """
    out = torch.empty((*a.shape[:-1], b.shape[-1]), dtype=a.dtype)
    kernels = load()
    if kernels is None:
        from samebits.portable.reference.contraction import gemm as reference

        return out.copy_(torch.from_numpy(reference(a.numpy(), b.numpy())))
    if out.numel():
        kernels.call("gemm", _words(a, b, out))
    return out


def _words(a: Tensor, b: Tensor, out: Tensor) -> tuple[int, ...]:
    batches = out.dim() == 3
    sizes = (a.shape[-2], b.shape[-1], a.shape[-1])
    strides = (*a.stride()[-2:], *b.stride()[-2:], out.stride(-2))
    leading = (out.shape[0], a.stride(0), b.stride(0), out.stride(0)) if batches else (1, 0, 0, 0)
    addresses = (a.data_ptr(), b.data_ptr(), out.data_ptr())
    return (int(a.dtype == torch.float64), *addresses, *sizes, *strides, *leading)
