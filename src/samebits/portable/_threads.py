"""Threads that are older than portable mode: they are in it for work that they get from a thread in it."""

from __future__ import annotations

import _thread
import concurrent.futures
import functools
import multiprocessing.pool
from typing import TYPE_CHECKING, Any

from samebits.portable._dispatch import is_portable

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits._runtime.patching import Patches

    Within = Callable[[Callable[[], Any]], Any]

_POOLS = {
    concurrent.futures.ThreadPoolExecutor: ("submit",),
    multiprocessing.pool.ThreadPool: ("apply_async", "_map_async", "imap", "imap_unordered"),
}


def work_within(patches: Patches, within: Within) -> None:
    """Have pools of threads, and threads of `_thread`, run in portable mode what they are given there.

    The threads of a pool may be older than the block.

    Args:
        patches: undone when portable mode ends.
        within: calls a function in portable mode.
    """
    for owner, names in _POOLS.items():
        for name in names:
            patches.set(owner, name, _giving(getattr(owner, name), within))
    patches.set(_thread, "start_new_thread", _starting(_thread.start_new_thread, within))


def _giving(method: Callable[..., Any], within: Within) -> Callable[..., Any]:
    @functools.wraps(method)
    def give(pool: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return method(pool, _following(function, within), *args, **kwargs)

    return give


def _starting(start: Callable[..., Any], within: Within) -> Callable[..., Any]:
    @functools.wraps(start)
    def start_new_thread(function: Callable[..., Any], /, *args: Any) -> Any:
        return start(_following(function, within), *args)

    return start_new_thread


def _following(function: Callable[..., Any], within: Within) -> Callable[..., Any]:
    """Return the function that computes as this thread does now."""
    if not is_portable():
        return function

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return within(lambda: function(*args, **kwargs))

    return run
