"""Fourier transforms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable._registry import handles, handles_complex, rounds_itself
from samebits.portable._tensors import REAL
from samebits.portable.kernels.fourier import (
    transform_complex,
    transform_reals,
    transform_to_reals,
    whole_spectrum,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

SECTION = "Fourier transforms"


@handles_complex("aten::_fft_c2c")
def fft_c2c(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    """Compute `aten::_fft_c2c`, from the last of the dimensions to the first."""
    scale = _scale(self.shape, dim, normalization)
    return _each(self, list(dim), scale, inverse=not forward)


@handles("aten::_fft_r2c")
@handles_complex("aten::_fft_r2c")
@rounds_itself
def fft_r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    """Compute `aten::_fft_r2c`: the last of the dimensions first."""
    if self.dtype not in REAL:
        raise RuntimeError(f"a transform of {self.dtype} numbers: float32 or float64 was expected")
    scale = _scale(self.shape, dim, normalization)
    *rest, last = dim
    axis = last % self.dim()
    half = transform_reals(self, axis, 1.0 if rest else scale)
    whole = half if onesided else whole_spectrum(half, axis, self.shape[axis])
    return _each(whole, rest, scale, inverse=False)


@handles_complex("aten::_fft_c2r")
def fft_c2r(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    """Compute `aten::_fft_c2r`: the last of the dimensions last."""
    *rest, last = dim
    axis = last % self.dim()
    sizes = [last_dim_size if d == axis else size for d, size in enumerate(self.shape)]
    half = _each(self, rest, 1.0, inverse=True).narrow(axis, 0, last_dim_size // 2 + 1)
    return transform_to_reals(half, axis, last_dim_size, _scale(sizes, dim, normalization))


@handles("aten::fft_fftfreq")
@rounds_itself
def fft_fftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """Compute `aten::fft_fftfreq`: whole numbers, rounded to the dtype, times one number."""
    return _frequencies([*range((n + 1) // 2), *range(-(n // 2), 0)], n, d, **options)


@handles("aten::fft_rfftfreq")
@rounds_itself
def fft_rfftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """Compute `aten::fft_rfftfreq`, the first half of these."""
    return _frequencies(range(n // 2 + 1), n, d, **options)


def _frequencies(
    numbers: Sequence[int],
    n: int,
    d: float,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    **_: Any,
) -> Tensor:
    indices = torch.tensor(numbers, dtype=torch.int64, device=device)
    return indices.to(dtype or torch.get_default_dtype()).mul(1.0 / (n * d))


def _each(x: Tensor, dims: list[int], scale: float, *, inverse: bool) -> Tensor:
    """Transform along the last of these dimensions, then along those before it; scale once, at the end."""
    for at in reversed(range(len(dims))):
        x = transform_complex(x, dims[at] % x.dim(), 1.0 if at else scale, inverse=inverse)
    return x


def _scale(sizes: Sequence[int], dims: Sequence[int], normalization: int) -> float:
    """Return 1, 1 / sqrt(n) or 1 / n, n being the number of values that each result is made of."""
    count = math.prod(sizes[d] for d in dims)
    if not normalization or not count:
        return 1.0
    return 1 / math.sqrt(count) if normalization == 1 else 1 / count
