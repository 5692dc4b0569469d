"""The ops of `torch.amp.GradScaler` ("Loss scaling" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles, rounds_itself

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


@handles("aten::_amp_foreach_non_finite_check_and_unscale_")
@rounds_itself
def unscale_(self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Compute `aten::_amp_foreach_non_finite_check_and_unscale_`: gradients times `inv_scale`, rounded."""
    for gradient in self:
        if not bool(torch.isfinite(gradient).all()):
            found_inf.fill_(1)
        gradient.mul_(inv_scale.to(gradient.dtype) if inv_scale.dim() else inv_scale)


@handles("aten::_amp_update_scale_")
@rounds_itself
def update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """Compute `aten::_amp_update_scale_`: down after an infinity, up after enough steps without one."""
    if found_inf.item():
        growth_tracker.zero_()
        return self.copy_(self.double() * scale_backoff_factor)
    steps = int(growth_tracker.item()) + 1
    if steps == growth_interval:
        grown = (self.double() * scale_growth_factor).to(self.dtype)
        if bool(torch.isfinite(grown).all()):
            self.copy_(grown)
        steps = 0
    growth_tracker.fill_(steps)
    return self
