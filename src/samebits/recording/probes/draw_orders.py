"""Orders that are drawn: of directory entries, and of what runs at the same time."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from samebits.hooks.frames import calling_frame
from samebits.hooks.standing import leave_no_line, standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from samebits.hooks.patching import Patches
    from samebits.recording.probes.draw_log import DrawLog


def scan(function: Any, op: str, log: DrawLog) -> Any:
    """Stands for `os.scandir`: the order of the entries is recorded when the last one was taken."""

    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            entries = function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        asked = log.asker(calling_frame(), op) if log.active else None
        if asked is None:
            return entries
        return Entries(entries, functools.partial(log.at, asked[1], log.site(asked[0])))

    return standing(function, call)


class Entries:
    """Stands for the iterator that `os.scandir` gives.

    Args:
        entries: the iterator.
        done: told of the names, in order.
    """

    def __init__(self, entries: Any, done: Callable[[list[Any]], None]) -> None:
        self._entries = entries
        self._done: Callable[[list[Any]], None] | None = done
        self._names: list[Any] = []

    def __iter__(self) -> Entries:
        return self

    def __next__(self) -> Any:
        try:
            entry = next(self._entries)
        except BaseException as error:
            leave_no_line(error)
            self.close()
            raise
        self._names.append(entry.name)
        return entry

    def __enter__(self) -> Entries:  # noqa: PYI034 - `Self` is new in Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory; tell what was seen."""
        self._entries.close()
        done, self._done = self._done, None
        if done is not None:
            done(self._names)


def watch_futures(module: Any, patches: Patches, log: DrawLog) -> None:
    """Record the order in which `concurrent.futures` completes, given its module `_base`."""
    as_completed, wait = module.as_completed, module.wait

    @functools.wraps(as_completed)
    def recorded_as_completed(fs: Any, timeout: float | None = None) -> Iterator[Any]:
        frame = calling_frame()
        asked = log.asker(frame, "concurrent.futures.as_completed") if log.active else None
        site = None if asked is None else log.site(asked[0])
        listed = list(fs)
        places = {id(future): place for place, future in reversed(list(enumerate(listed)))}
        stream = as_completed(listed, timeout)
        del listed, fs  # results are freed as they are handed over
        try:
            for future in stream:
                if asked is not None:
                    log.at(asked[1], site, places[id(future)])
                yield future
                del future
        except BaseException as error:
            leave_no_line(error)
            raise

    @functools.wraps(wait)
    def recorded_wait(fs: Any, timeout: float | None = None, return_when: str = "ALL_COMPLETED") -> Any:
        listed = list(fs)
        try:
            result = wait(listed, timeout, return_when)
        except BaseException as error:
            leave_no_line(error)
            raise
        if result.not_done:
            done = [place for place, future in enumerate(listed) if future in result.done]
            log.taken("concurrent.futures.wait", calling_frame(), done)
        return result

    for owner in (module, sys.modules["concurrent.futures"]):
        patches.set(owner, "as_completed", recorded_as_completed)
        patches.set(owner, "wait", recorded_wait)


def watch_pools(module: Any, patches: Patches, log: DrawLog) -> None:
    """Record the order in which results of `Pool.imap_unordered` arrive, given `multiprocessing.pool`."""
    results = module.IMapUnorderedIterator
    start, arrive = results.__init__, results._set

    @functools.wraps(start)
    def recorded_start(self: Any, *args: Any, **kwargs: Any) -> None:
        start(self, *args, **kwargs)
        frame = calling_frame().f_back  # `imap_unordered`'s caller
        asked = log.asker(frame, "") if log.active else None
        if asked is not None:
            self._asked_at = log.site(asked[0])

    @functools.wraps(arrive)
    def recorded_arrive(self: Any, i: int, obj: Any) -> None:
        site = vars(self).get("_asked_at", log)
        if site is not log:
            log.at("multiprocessing.pool.Pool.imap_unordered", site, i)
        arrive(self, i, obj)

    patches.set(results, "__init__", recorded_start)
    patches.set(results, "_set", recorded_arrive)
