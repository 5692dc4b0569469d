"""All deterministic kernels, by name of the op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.deterministic_kernels import (
    counting,
    losses,
    pooling,
    resampling,
    sampling,
    scattering,
    selection,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KERNELS: Mapping[str, Callable[..., object]] = {
    name: kernel
    for module in (counting, losses, pooling, resampling, sampling, scattering, selection)
    for name, kernel in module.KERNELS.items()
}
"""Names without `aten::`, such as `histc` or `scatter.reduce`."""
