"""Ops that torch makes of others, and that portable mode computes whole.

In front of torch's composition each has a kernel at the place of autograd (gradients.py). Where autograd is
off altogether, in inference mode, it comes to portable mode like any other op, and has a plan (_plans.py).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from samebits._torch.kernel_overrides import exists
from samebits.portable import cross_entropy, device_choices, lstm_layers
from samebits.portable._devices import CUDA, device_types

if TYPE_CHECKING:
    from collections.abc import Callable

_ON_EVERY_DEVICE: dict[str, Callable[..., Any]] = {
    cross_entropy.NAME: cross_entropy.cross_entropy,
    lstm_layers.OP: lstm_layers.run_or,
}


@functools.cache
def whole_ops(device: str | None = None) -> dict[str, Callable[..., Any]]:
    """Return the function of each op that this torch has, by its name without `aten::`.

    It is called with torch's composition of a call, for what is left to it, and with the arguments.

    Args:
        device: of the tensors, such as `cpu`; None for those of any device that has kernels here.
    """
    on_gpu = CUDA in device_types() if device is None else device == CUDA
    found = _ON_EVERY_DEVICE | (device_choices.choices() if on_gpu else {})
    return {name: function for name, function in found.items() if exists(name)}
