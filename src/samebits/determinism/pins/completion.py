"""The completion pin: results of pools and futures are taken in the order in which they were asked for."""

from __future__ import annotations

import functools
import itertools
import sys
from time import monotonic
from typing import TYPE_CHECKING, Any

from samebits.determinism.pins.queues import pin_queues

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.determinism.pins.tools import PinTools

_NUMBER = "_samebits_number"
PATIENCE_S = 5.0
"""How long the next one in order is waited for while others are ready."""


def pin_completion(tools: PinTools) -> None:
    """Order `as_completed`, `wait`, `Pool.imap_unordered`, and queues that several processes fill."""
    pin_queues(tools)
    tools.imports.on_import("concurrent.futures", lambda _: _pin_futures(tools))
    tools.imports.on_import("multiprocessing.pool", lambda pool: _pin_pools(tools, pool))


def _pin_futures(tools: PinTools) -> None:
    base: Any = sys.modules["concurrent.futures._base"]
    _number_futures(tools, base.Future)
    as_completed, wait = base.as_completed, base.wait

    @functools.wraps(as_completed)
    def in_order(fs: Any, timeout: float | None = None) -> Iterator[Any]:
        waiting = _in_order(fs)
        end = None if timeout is None else monotonic() + timeout
        while waiting:
            wait(waiting[:1], _least(end, PATIENCE_S))
            chosen = next((future for future in waiting if future.done()), None)
            if chosen is not None:
                waiting.remove(chosen)
                yield chosen
                del chosen
            elif end is not None and monotonic() >= end:
                yield from as_completed(waiting, 0)  # raises as it does
            else:
                wait(waiting, _least(end, PATIENCE_S), "FIRST_COMPLETED")

    @functools.wraps(wait)
    def wait_in_order(fs: Any, timeout: float | None = None, return_when: str = "ALL_COMPLETED") -> Any:
        waiting = _in_order(fs)
        if return_when != "FIRST_COMPLETED" or not waiting:
            return wait(waiting, timeout, return_when)
        wait(waiting[:1], PATIENCE_S if timeout is None else min(timeout, PATIENCE_S))
        if not waiting[0].done():
            return wait(waiting, timeout, return_when)
        return base.DoneAndNotDoneFutures({waiting[0]}, set(waiting[1:]))

    for owner in (base, sys.modules["concurrent.futures"]):
        tools.patches.set(owner, "as_completed", in_order)
        tools.patches.set(owner, "wait", wait_in_order)


def _number_futures(tools: PinTools, kind: Any) -> None:
    original, numbers = kind.__init__, itertools.count()

    @functools.wraps(original)
    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        setattr(self, _NUMBER, next(numbers))

    tools.patches.set(kind, "__init__", begin)


def _in_order(futures: Any) -> list[Any]:
    unique = {id(future): future for future in futures}
    return sorted(unique.values(), key=lambda future: getattr(future, _NUMBER, -1))


def _least(end: float | None, seconds: float) -> float:
    return seconds if end is None else max(0.0, min(seconds, end - monotonic()))


def _pin_pools(tools: PinTools, module: Any) -> None:
    pool = module.Pool
    original = pool.imap_unordered

    @functools.wraps(original)
    def imap_unordered(self: Any, func: Any, iterable: Any, chunksize: int = 1) -> Any:
        return self.imap(func, iterable, chunksize)

    tools.patches.set(pool, "imap_unordered", imap_unordered)
    _pin_callbacks(tools, module)


def _pin_callbacks(tools: PinTools, module: Any) -> None:
    """Results of `apply_async` with a callback arrive in the order of the calls, in each pool."""
    kind = module.ApplyResult
    start, arrive = kind.__init__, kind._set
    queues: dict[int, list[Any]] = {}

    @functools.wraps(start)
    def begin(self: Any, pool: Any, callback: Any, error_callback: Any) -> None:
        start(self, pool, callback, error_callback)
        if type(self) is kind and callback is not None:
            queues.setdefault(id(pool), []).append(self)

    @functools.wraps(arrive)
    def arrived(self: Any, i: int, obj: Any) -> None:
        queue = next((queue for queue in queues.values() if self in queue), None)
        if queue is None:
            arrive(self, i, obj)
            return
        self._samebits_result = (i, obj)
        while queue and hasattr(queue[0], "_samebits_result"):
            first = queue.pop(0)
            arrive(first, *first._samebits_result)

    tools.patches.set(kind, "__init__", begin)
    tools.patches.set(kind, "_set", arrived)
