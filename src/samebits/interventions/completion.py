"""The intervention `completion`: results and messages are taken in the order in which work was given.

Results of futures and pools come in the order in which they were asked for. Each value that is put into a
queue carries the number of its process, in the order in which processes were started. Values are taken from
these processes in turn: the first of each, then the second of each. A process whose turn it is is waited for
until it has ended, or for `PATIENCE_S` while nothing comes from it. Then it is passed over.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import caller, calling_frame
from samebits.interventions.intervention import Intervention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from samebits.interventions.intervention import Replacements

    Sender = tuple[int, ...]
    Take = Callable[[float], Any]

_NUMBER = "_samebits_number"
PATIENCE_S = 5.0
"""The time to wait for the next result in order while others are ready."""
_POLL_S = 0.01
_INBOX = "_samebits_inbox"


def fix_completion(replacements: Replacements) -> None:
    """Order `as_completed`, `wait`, `Pool.imap_unordered`, and queues that several processes fill."""
    fix_queues(replacements)
    replacements.imports.on_import("concurrent.futures", lambda _: _fix_futures(replacements))
    replacements.imports.on_import("multiprocessing.pool", lambda pool: _fix_pools(replacements, pool))


def _fix_futures(replacements: Replacements) -> None:
    base: Any = sys.modules["concurrent.futures._base"]
    _number_futures(replacements, base.Future)
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
        replacements.patches.set(owner, "as_completed", in_order)
        replacements.patches.set(owner, "wait", wait_in_order)


def _number_futures(replacements: Replacements, kind: Any) -> None:
    original, numbers = kind.__init__, itertools.count()

    @functools.wraps(original)
    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        setattr(self, _NUMBER, next(numbers))

    replacements.patches.set(kind, "__init__", begin)


def _in_order(futures: Any) -> list[Any]:
    unique = {id(future): future for future in futures}
    return sorted(unique.values(), key=lambda future: getattr(future, _NUMBER, -1))


def _least(end: float | None, seconds: float) -> float:
    return seconds if end is None else max(0.0, min(seconds, end - monotonic()))


def _fix_pools(replacements: Replacements, module: Any) -> None:
    pool = module.Pool
    original = pool.imap_unordered

    @functools.wraps(original)
    def imap_unordered(self: Any, func: Any, iterable: Any, chunksize: int = 1) -> Any:
        return self.imap(func, iterable, chunksize)

    replacements.patches.set(pool, "imap_unordered", imap_unordered)
    _fix_callbacks(replacements, module)


def _fix_callbacks(replacements: Replacements, module: Any) -> None:
    """Let results of `apply_async` with a callback arrive in the order of the calls, in each pool."""
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

    replacements.patches.set(kind, "__init__", begin)
    replacements.patches.set(kind, "_set", arrived)


class Sent:
    """A value on its way through a queue, with its sender.

    Args:
        value: the value itself.
        sender: the process, as the numbers under which it and its ancestors were started.
    """

    __slots__ = ("sender", "value")

    def __init__(self, value: Any, sender: Sender) -> None:
        self.value = value
        self.sender = sender


class Inbox:
    """The values that came out of a queue and were not yet handed to the script.

    Args:
        take: takes the next value, waiting for that many seconds at most; raises `queue.Empty`.
        children: the processes that this one has started, by their position.
    """

    def __init__(self, take: Take, children: Callable[[], dict[Sender, Any]]) -> None:
        self.process = os.getpid()
        self._take = take
        self._children = children
        self._arrived: dict[Sender, deque[Any]] = {}
        self._given: dict[Sender, int] = {}
        self._passed_over: set[Sender] = set()
        self._expected: dict[Sender, Any] = {}

    def __bool__(self) -> bool:
        return any(self._arrived.values())

    def next(self, end: float | None) -> Any:
        """Return the next value in turn.

        Args:
            end: moment of `monotonic` to wait until; None for ever.

        Raises:
            queue.Empty: it did not come in time.
        """
        from queue import Empty

        since = monotonic()
        while True:
            self._collect(0.0)
            sender = self._in_turn()
            if sender is not None and self._arrived.get(sender):
                self._given[sender] = self._given.get(sender, 0) + 1
                return self._arrived[sender].popleft()
            if sender is not None and self._is_over(sender, since):
                self._passed_over.add(sender)
                since = monotonic()
                continue
            if end is not None and monotonic() >= end:
                raise Empty
            self._collect(_POLL_S if end is None else max(0.0, min(_POLL_S, end - monotonic())))

    def _collect(self, seconds: float) -> None:
        """Take everything that has arrived out of the queue."""
        from queue import Empty

        try:
            while True:
                received = self._take(seconds)
                sender, value = (
                    (received.sender, received.value) if isinstance(received, Sent) else ((), received)
                )
                self._arrived.setdefault(sender, deque()).append(value)
                self._passed_over.discard(sender)
                seconds = 0.0
        except Empty:
            return

    def _in_turn(self) -> Sender | None:
        """Return the sender from which the fewest values were taken, of those that have or may send some."""
        self._expected |= self._children()
        senders = {sender for sender, values in self._arrived.items() if values}
        senders |= self._expected.keys() - self._passed_over
        return min(senders, key=lambda sender: (self._given.get(sender, 0), sender), default=None)

    def _is_over(self, sender: Sender, since: float) -> bool:
        """Tell whether waiting for a sender is over."""
        if monotonic() - since > PATIENCE_S:
            return True
        if self._expected[sender].exitcode is None:
            return False
        self._collect(0.0)  # what it sent at its end is there
        return not self._arrived.get(sender)


def fix_queues(replacements: Replacements) -> None:
    """Have queues and pipes of `multiprocessing` give what several processes send in a fixed order."""
    replacements.imports.on_import("multiprocessing.queues", lambda module: _fix_queues(replacements, module))
    replacements.imports.on_import(
        "multiprocessing.connection", lambda module: _fix_wait(replacements, module)
    )


def _fix_queues(replacements: Replacements, module: Any) -> None:
    for kind in (module.Queue, module.JoinableQueue, module.SimpleQueue):
        if "put" in vars(kind):
            replacements.patches.set(kind, "put", _putting(replacements, vars(kind)["put"]))
    for kind, take in ((module.Queue, _take_queue), (module.SimpleQueue, _take_simple)):
        replacements.patches.set(kind, "get", _getting(replacements, vars(kind)["get"], take))
        replacements.patches.set(kind, "empty", _is_empty(vars(kind)["empty"]))


def _putting(replacements: Replacements, original: Any) -> Any:
    @functools.wraps(original)
    def put(self: Any, obj: Any, *args: Any, **kwargs: Any) -> None:
        if replacements.asker.is_direct(calling_frame()):
            obj = Sent(obj, _own_position())
        original(self, obj, *args, **kwargs)

    return put


def _getting(replacements: Replacements, original: Any, take: Callable[[Any, Any, float], Any]) -> Any:
    @functools.wraps(original)
    def get(self: Any, block: bool = True, timeout: float | None = None) -> Any:  # noqa: FBT001, FBT002
        frame: Any = caller(calling_frame())
        direct = replacements.asker.is_direct(frame.f_back if frame.f_code.co_name == "get_nowait" else frame)
        inbox = vars(self).get(_INBOX)
        if inbox is None or inbox.process != os.getpid():
            inbox = Inbox(functools.partial(take, original, self), _children)
            setattr(self, _INBOX, inbox)
        if not direct and not inbox:
            received = original(self) if take is _take_simple else original(self, block, timeout)
            return received.value if isinstance(received, Sent) else received
        end = monotonic() + (timeout or 0.0) if timeout is not None or not block else None
        return inbox.next(end)

    return get


def _is_empty(original: Any) -> Any:
    @functools.wraps(original)
    def empty(self: Any) -> bool:
        return not vars(self).get(_INBOX) and bool(original(self))

    return empty


def _take_queue(original: Any, queue: Any, seconds: float) -> Any:
    return original(queue, seconds > 0, seconds or None)


def _take_simple(original: Any, queue: Any, seconds: float) -> Any:
    from queue import Empty

    if not queue._reader.poll(seconds):
        raise Empty
    return original(queue)


def _own_position() -> Sender:
    process: Any = sys.modules["multiprocessing.process"].current_process()
    return tuple(process._identity)


def _children() -> dict[Sender, Any]:
    """Return the processes that this one has started and not yet joined."""
    listed: Any = sys.modules["multiprocessing.process"]
    return {tuple(child._identity): child for child in list(listed._children)}


def _fix_wait(replacements: Replacements, module: Any) -> None:
    """Let `wait` give all that are ready, in the order of the list, when all are or patience is over."""
    original = module.wait
    slow: set[int] = set()

    def in_order(_: Any, object_list: Any, timeout: float | None = None) -> list[Any]:
        listed = list(object_list)
        limit = PATIENCE_S if timeout is None else min(timeout, PATIENCE_S)
        end, ready = monotonic() + limit, original(listed, 0)
        awaited = [each for each in listed if id(each) not in slow]
        while any(each not in ready for each in awaited) and monotonic() < end:
            original([each for each in awaited if each not in ready], end - monotonic())
            ready = original(listed, 0)
        slow.update(id(each) for each in awaited if each not in ready)
        if not ready:
            ready = original(listed, None if timeout is None else max(0.0, timeout - limit))
        return [each for each in listed if each in ready]

    replacements.replace(module, "wait", in_order, replacements.asker.is_direct)


COMPLETION = Intervention(
    "completion",
    "with results taken in the order of submission",
    patch=fix_completion,
    limits="queues between threads (`serial-threads`) and of a manager; a result or a process that takes "
    "over 5 s longer than others is passed over",
)
