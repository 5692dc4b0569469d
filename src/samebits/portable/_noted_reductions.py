"""Which reduction a call of a process group asks for, where torch's op does not let Python read it.

Before torch 2.15 an op of `c10d` carries its reduction as an object of C++ without members. So the methods of
process groups that Python calls note it first. The reducer of `DistributedDataParallel` calls `allreduce_`
from C++, and it only sums; no other op is called without a note.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from samebits._torch.portable import schema_name
from samebits._torch.rank_groups import (
    can_read_reductions,
    group_class,
    reducing_methods,
    reduction_among,
    reduction_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits._runtime.patching import Patches


class _Noted(threading.local):
    name: str | None = None


_NOTED = _Noted()


def noted_reduction(op: Any, argument: Any) -> str:
    """Return the name of the reduction of an op that is called now; `unknown` if nothing tells.

    Args:
        op: the op.
        argument: what it got as `reduce_op`.
    """
    if can_read_reductions():
        return reduction_in(argument)
    return _NOTED.name or ("SUM" if schema_name(op) == "c10d::allreduce_" else "unknown")


def note_reductions(patches: Patches) -> None:
    """Have process groups note their reductions.

    Args:
        patches: undone when portable mode ends.
    """
    if not dist.is_available():
        return
    if can_read_reductions():
        return
    owner = group_class()
    for name in reducing_methods():
        patches.set(owner, name, _noting(getattr(owner, name)))


def _noting(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        before, _NOTED.name = _NOTED.name, reduction_among([*args, *kwargs.values()])
        try:
            return method(*args, **kwargs)
        finally:
            _NOTED.name = before

    return call
