"""Repeating an op on another core, so that the threads of its kernel meet in another order."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from samebits.determinism.op_advice import SWITCHABLE

if TYPE_CHECKING:
    from collections.abc import Iterator


_SUSPECTS = frozenset(name.strip("_") for name in SWITCHABLE)
_SUSPECT_TURNS = 64
_TURNS = 2


class Cores:
    """Moves the calling thread from core to core while it repeats an op.

    The threads of a kernel often reach shared memory in the same order each time, and then a race does not
    show: with `index_put_(accumulate=True)` on a machine of 2 cores, 0 of 60 repetitions differed in some
    processes, and 24 to 29 of 60 when the core changed from one to the next. No op that repeats can tell.

    A thread that shares its core with another that waits for it is slow, so only the first calls of each op
    are moved: more of those that torch knows to race.

    It does nothing where torch has one thread, the system cannot bind threads (macOS, Windows), or this
    thread is bound to one core already.

    Args:
        torch: the module.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._turns: dict[str, int] = {}
        self._possible = hasattr(os, "sched_setaffinity")

    @contextlib.contextmanager
    def another(self, op: str) -> Iterator[None]:
        """Run the body on the next core, then give this thread all its cores back.

        The body must start no threads: they would stay on that core.

        Args:
            op: what is repeated, such as `aten::index_put_`.
        """
        cores = self._available(op)
        if not cores:
            yield
            return
        own, turn = set(cores), self._turns[op]
        try:
            os.sched_setaffinity(0, {cores[turn % len(cores)]})
        except OSError:  # not allowed here
            self._possible = False
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, own)

    def _available(self, op: str) -> list[int]:
        """The cores of this thread; none when it is not to be moved."""
        turn = self._turns.get(op, 0)
        if not self._possible or turn >= _SUSPECT_TURNS:
            return []
        if turn >= _TURNS and op.partition("::")[2].strip("_") not in _SUSPECTS:
            return []
        if self._torch.get_num_threads() == 1:
            return []
        self._turns[op] = turn + 1
        cores = sorted(os.sched_getaffinity(0))
        return cores if len(cores) > 1 else []
