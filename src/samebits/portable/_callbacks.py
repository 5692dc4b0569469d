"""Callbacks of futures run in portable mode if they were registered there.

torch calls them in a thread of its own, when a communication is done. Those of communication hooks compute:
PowerSGD's multiply matrices.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from samebits._torch.rank_groups import future_class
from samebits.portable._dispatch import is_portable

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits._runtime.patching import Patches

    Within = Callable[[Callable[[], Any]], Any]

_METHODS = ("then", "add_done_callback")


def callbacks_within(patches: Patches, within: Within) -> None:
    """Have futures of torch call callbacks in portable mode that a thread in portable mode registers.

    Args:
        patches: undone when portable mode ends.
        within: calls a function in portable mode.
    """
    if not dist.is_available():
        return
    owner = future_class()
    for name in _METHODS:
        patches.set(owner, name, _registering(getattr(owner, name), within))


def _registering(method: Callable[..., Any], within: Within) -> Callable[..., Any]:
    @functools.wraps(method)
    def register(future: Any, callback: Callable[[Any], Any]) -> Any:
        if not is_portable():
            return method(future, callback)

        @functools.wraps(callback)
        def call(done: Any) -> Any:
            return within(lambda: callback(done))

        return method(future, call)

    return register
