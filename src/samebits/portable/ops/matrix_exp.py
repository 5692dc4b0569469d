"""The exponential of matrices, in float64 ("Linear algebra" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from samebits.portable._arrays import as_array, as_tensor
from samebits.portable._registry import handles
from samebits.portable.kernels.gemm import gemm
from samebits.portable.kernels.reductions import sum_magnitudes_over
from samebits.portable.ops.checks import REAL, refuse

if TYPE_CHECKING:
    from torch import Tensor


_DEGREE = 18  # 1 / 19! is below the accuracy of float64


@handles("aten::linalg_matrix_exp")
def linalg_matrix_exp(self: Tensor) -> Tensor:
    """Compute `aten::linalg_matrix_exp`: a Taylor polynomial, squared as often as the matrix was halved."""
    if self.dtype not in REAL:
        refuse("linalg_matrix_exp", f"of {self.dtype} tensors")
    n = self.shape[-1]
    a = self.to(torch.float64).reshape(self.shape[:-2].numel(), n, n)
    norms = as_array(sum_magnitudes_over(a, 1)).max(1, initial=0.0)
    halvings = np.maximum(np.frexp(np.where(np.isfinite(norms), norms, 0.0))[1], 0)
    out = _polynomial(as_tensor(np.ldexp(as_array(a), -halvings[:, None, None])))
    for turn in range(int(halvings.max(initial=0))):
        here = as_tensor(halvings > turn)
        out[here] = gemm(out[here], out[here])
    out[as_tensor(~np.isfinite(norms))] = torch.nan
    return out.reshape(self.shape).to(self.dtype)


def _polynomial(a: Tensor) -> Tensor:
    """Return 1 + a (1 + a/2 (1 + a/3 (…)))."""
    unit = torch.eye(a.shape[-1], dtype=a.dtype)
    out = unit.expand(a.shape).clone()
    for k in range(_DEGREE, 0, -1):
        out = unit + gemm(a, out) / k
    return out
