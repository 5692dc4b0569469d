"""Threads that a script starts, with what they run called by another function."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    Run = Callable[[], Any]


def start_within(start: Callable[..., Any], around: Callable[[Run], Any]) -> Callable[..., Any]:
    """`threading.Thread.start` for threads whose `run` is called by `around`, in the new thread.

    Args:
        start: `Thread.start` as it is.
        around: is given what the thread runs.
    """

    @functools.wraps(start)
    def started(thread: threading.Thread) -> None:
        run, own = thread.run, "run" in vars(thread)

        def restore() -> None:
            vars(thread).pop("run", None)
            if own:
                thread.run = run  # type: ignore[method-assign]

        def run_within() -> None:
            restore()
            around(run)

        # On the instance: a subclass may have a `run` of its own.
        thread.run = run_within  # type: ignore[method-assign]
        try:
            start(thread)
        except BaseException:  # it runs already, or no thread can be made
            restore()
            raise

    return started
