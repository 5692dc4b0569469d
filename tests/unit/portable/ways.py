"""The ways in which ops come to portable mode, side by side."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from torch.utils._python_dispatch import TorchDispatchMode

import samebits
from samebits._torch.dispatch_key import can_register
from samebits.portable._mode import DispatchMode
from samebits.portable._registration import Registration
from samebits.portable.activation import layers_op_by_op
from samebits.portable.gradients import own_gradients

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor


class Passing(TorchDispatchMode):
    """A mode of the user's. torch has other gradients for some ops while there is one."""

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        return op(*args, **(kwargs or {}))


def digest_within(modes: list[Any], run: Callable[[], list[Tensor]]) -> str:
    """The digest of what a function returns in some modes, the outermost first."""
    with contextlib.ExitStack() as entered:
        entered.enter_context(own_gradients())
        entered.enter_context(layers_op_by_op())
        for mode in modes:
            entered.enter_context(mode)
        found = run()
    return str(samebits.digest(found))


def in_all_ways(run: Callable[[], list[Tensor]]) -> list[str]:
    """The digests of what a function returns: in the dispatch mode, by registration, and that in a mode."""
    return [in_dispatch_mode(run), *by_registration(run)]


def in_dispatch_mode(run: Callable[[], list[Tensor]]) -> str:
    return digest_within([DispatchMode()], run)


def by_registration(run: Callable[[], list[Tensor]]) -> list[str]:
    """The digests by registration, alone and in a mode. None where this torch takes no such kernels."""
    if not can_register():
        return []
    return [digest_within(modes, run) for modes in ([Registration()], [Registration(), Passing()])]
