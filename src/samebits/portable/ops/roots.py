"""Square roots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels import elementwise

if TYPE_CHECKING:
    from torch import Tensor


@handles("aten::sqrt")
def sqrt(self: Tensor) -> Tensor:
    """Compute `aten::sqrt`; integers become the default dtype, as in torch."""
    return elementwise.sqrt(self if self.is_floating_point() else self.to(torch.get_default_dtype()))


@handles("aten::sqrt_")
def sqrt_in_place(self: Tensor) -> Tensor:
    """Compute `aten::sqrt_`."""
    return elementwise.sqrt_(self)
