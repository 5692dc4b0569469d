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
        kernels.call("gemm", _words(a, b, out), (1.0, 1.0))
    return out


def _words(a: Tensor, b: Tensor, out: Tensor) -> tuple[int, ...]:
    bt = out.dim() == 3
    return (int(a.dtype == torch.float64), out.shape[0] if bt else 1, out.shape[-2], out.shape[-1], a.shape[-1],
        a.data_ptr(), *a.stride()[-2:], a.stride(0) if bt else 0,
        b.data_ptr(), *b.stride()[-2:], b.stride(0) if bt else 0,
        out.data_ptr(), *out.stride()[-2:], out.stride(0) if bt else 0, 0, 0, 0, 0)
