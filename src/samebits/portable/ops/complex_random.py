"""Random complex numbers: random real numbers in pairs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable._registry import handles_complex
from samebits.portable.kernels.complex_numbers import of_pairs
from samebits.portable.ops import distributions, random

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

SECTION = "Complex numbers"
_ROOT_HALF = math.sqrt(0.5)


def _pairs_like(out: Tensor) -> Tensor:
    return torch.empty((*out.shape, 2), dtype=out.dtype.to_real(), device=out.device)


@handles_complex("aten::uniform_")
def uniform_(self: Tensor, from_: float = 0, to: float = 1, *, generator: Any = None) -> Tensor:
    """Compute `aten::uniform_`, both parts of one number after the other."""
    return self.copy_(of_pairs(random.uniform_(_pairs_like(self), from_, to, generator=generator)))


@handles_complex("aten::normal_")
def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None) -> Tensor:
    """Compute `aten::normal_`: each part has half of the variance."""
    pairs = distributions.normal_(_pairs_like(self), mean, std * _ROOT_HALF, generator=generator)
    return self.copy_(of_pairs(pairs))


@handles_complex("aten::rand", "aten::rand.generator")
def rand(size: Sequence[int], *, generator: Any = None, **options: Any) -> Tensor:
    """Compute `aten::rand`."""
    return uniform_(torch.empty(size, **options), generator=generator)


@handles_complex("aten::rand_like")
def rand_like(self: Tensor, **options: Any) -> Tensor:
    """Compute `aten::rand_like`."""
    return uniform_(torch.empty_like(self, **options))


@handles_complex("aten::randn", "aten::randn.generator")
def randn(size: Sequence[int], *, generator: Any = None, **options: Any) -> Tensor:
    """Compute `aten::randn`."""
    return normal_(torch.empty(size, **options), generator=generator)


@handles_complex("aten::randn_like")
def randn_like(self: Tensor, **options: Any) -> Tensor:
    """Compute `aten::randn_like`."""
    return normal_(torch.empty_like(self, **options))
