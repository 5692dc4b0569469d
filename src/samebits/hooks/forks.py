"""Following forks: what Python calls at a fork it never forgets, so it is given a weak reference only."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def at_fork(*, before: Callable[[], None] | None = None, in_child: Callable[[], None] | None = None) -> None:
    """Call methods at every fork for as long as their objects live.

    Args:
        before: bound method, called in the parent before it forks.
        in_child: bound method, called in the child.
    """
    if before is not None:
        os.register_at_fork(before=_weakly(before))
    if in_child is not None:
        os.register_at_fork(after_in_child=_weakly(in_child))


def _weakly(method: Callable[[], None]) -> Callable[[], None]:
    held = weakref.WeakMethod(method)

    def call() -> None:
        living = held()
        if living is not None:
            living()

    return call
