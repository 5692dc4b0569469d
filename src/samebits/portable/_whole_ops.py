"""Ops that torch makes of others, and that portable mode computes whole.

In front of torch's composition each has a kernel at the place of autograd (gradients.py). Where autograd is
off altogether, in inference mode, it comes to portable mode like any other op, and has a plan (_plans.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.portable import cross_entropy, lstm_layers

if TYPE_CHECKING:
    from collections.abc import Callable

WHOLE_OPS: dict[str, Callable[..., Any]] = {
    cross_entropy.NAME: cross_entropy.cross_entropy,
    lstm_layers.OP: lstm_layers.run_or,
}
"""By name of the op, without `aten::`: called with torch's composition of a call, for what is left to it, and
with the arguments."""
