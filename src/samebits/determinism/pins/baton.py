"""The pin `serial-threads`: of the script's threads one runs at a time, until it waits or ends.

Who may run holds the baton. It is given up where a thread waits (`Condition.wait`, and so queues, events and
futures; `Thread.join`; `time.sleep`; the loop of asyncio) and where it ends; the next one is the oldest that
is ready. Threads come in the order in which they were started, the tasks of a `ThreadPoolExecutor` in the
order in which they were submitted.

A thread that waits where it cannot be seen, in C code, is noticed: it sleeps and uses no processor. Then the
baton is taken from it. One that neither waits nor ends for `LIMIT_S` while others are ready ends the pin.
"""

from __future__ import annotations

import _thread
import functools
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from samebits.hooks.asking import Asker
from samebits.hooks.frames import calling_frame

if TYPE_CHECKING:
    from samebits.determinism.pins.tools import PinTools

LIMIT_S = 10.0
_POLL_S = 0.001
_SETTLE_POLLS = 3  # threads that were woken by the last one come forward meanwhile
_BLOCKED_POLLS = 40
_BUSY_S = 0.01
_HANDING_ON = frozenset({"concurrent", "asyncio"})
# The originals: the pins of the clock and of the process replace them.
_sleep, _monotonic, _process_time, _getpid = time.sleep, time.monotonic, time.process_time, os.getpid


class Turn:
    """A thread, or a task, that takes part.

    Args:
        number: its place in the order.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.native = 0
        self.gate = _thread.allocate_lock()
        self.gate.acquire()

    def asleep(self) -> bool:
        """Whether its thread waits for something, as far as the system tells."""
        try:
            with open(f"/proc/self/task/{self.native}/stat", "rb") as file:
                return file.read().rpartition(b")")[2].split()[0] in (b"S", b"D")
        except (OSError, IndexError):
            return True  # the processor time decides alone


class Baton:
    """Decides which of the script's threads runs."""

    def __init__(self) -> None:
        self._own = threading.local()
        self._reset()
        self.ended = False

    def _reset(self) -> None:
        self._process = _getpid()
        self._lock = _thread.allocate_lock()
        self._numbers = 0
        self._ready: list[Turn] = []
        self._holder: Turn | None = None
        self._watched = False

    def new_turn(self) -> Turn:
        """For what the running thread starts; that one takes part from now on."""
        if self._process != _getpid():  # a forked child: its other threads are not there
            self._own = threading.local()
            self._reset()
        mine = self.mine()
        with self._lock:
            if mine is None:
                mine = self._own.turn = self._made()
                mine.native = threading.get_native_id()
                if self._holder is None:
                    self._holder = mine
            return self._made()

    def _made(self) -> Turn:
        self._numbers += 1
        return Turn(self._numbers)

    def mine(self) -> Turn | None:
        """The turn of this thread, if it takes part."""
        if self.ended or self._process != _getpid():
            return None
        return getattr(self._own, "turn", None)

    def begin(self, turn: Turn) -> None:
        """This thread takes part as that turn; comes back when it is its time."""
        self._own.turn = turn
        turn.native = threading.get_native_id()
        self.take(turn)

    def take(self, turn: Turn) -> None:
        """Wait for the baton."""
        with self._lock:
            if self.ended or self._holder is turn:
                return
            self._ready.append(turn)
            if not self._watched:
                self._watched = True
                _thread.start_new_thread(self._watch, (self._process,))
        turn.gate.acquire()

    def give_up(self, turn: Turn) -> None:
        """Let others run."""
        with self._lock:
            if self._holder is turn:
                self._holder = None

    def end_turn(self, turn: Turn) -> None:
        """This thread is done."""
        self._own.turn = None
        self.give_up(turn)

    def end(self) -> None:
        """Let all run."""
        with self._lock:
            self.ended = True
            ready, self._ready = self._ready, []
        for turn in ready:
            turn.gate.release()

    def _watch(self, process: int) -> None:
        """Hand the baton on; in a thread of its own: one that waits may hold locks that others need."""
        settled, watch = 0, _Watch()
        while not self.ended and _getpid() == process:
            _sleep(_POLL_S)
            holder = self._holder
            settled = settled + 1 if holder is None else 0
            if holder is None and settled >= _SETTLE_POLLS:
                self._hand_on()
            elif holder is not None and self._ready:
                verdict = watch.look(holder)
                if verdict == "blocked":
                    self.give_up(holder)
                elif verdict == "long":
                    self.end()
            else:
                watch = _Watch()

    def _hand_on(self) -> None:
        with self._lock:
            if self._holder is None and self._ready:
                turn = min(self._ready, key=lambda turn: turn.number)
                self._ready.remove(turn)
                self._holder = turn
                turn.gate.release()


class _Watch:
    """What the holder has done since it was first looked at."""

    def __init__(self) -> None:
        self._turn: Turn | None = None
        self._since = self._busy = 0.0
        self._polls = 0

    def look(self, turn: Turn) -> str:
        """`blocked` in something that cannot be seen, `long` without a wait, or neither."""
        if self._turn is not turn:
            self._turn, self._since = turn, _monotonic()
            self._polls = 0
        if not self._polls or not turn.asleep():
            self._busy, self._polls = _process_time(), 0
        self._polls += 1
        if self._polls > _BLOCKED_POLLS:
            if _process_time() - self._busy < _BUSY_S + 0.25 * _POLL_S * self._polls:
                self._polls = 0
                return "blocked"
            self._polls = 0  # it waits for threads that work for it
        return "long" if _monotonic() - self._since > LIMIT_S else ""


def pin_threads_in_turn(tools: PinTools) -> None:
    """Run the script's threads one at a time."""
    baton = Baton()
    tools.at_end.append(baton.end)
    _follow_threads(tools, baton)
    _follow_waits(tools, baton)
    tools.imports.on_import("concurrent.futures.thread", lambda module: _follow_tasks(tools, module, baton))
    tools.imports.on_import("selectors", lambda module: _follow_selectors(tools, module, baton))


def _follow_threads(tools: PinTools, baton: Baton) -> None:
    original, get_frame = threading.Thread.start, calling_frame

    @functools.wraps(original)
    def start(self: Any) -> None:
        if baton.ended or not tools.asker.is_direct(get_frame(1)):
            original(self)
            return
        turn, run = baton.new_turn(), self.run

        def in_turn() -> None:
            baton.begin(turn)
            try:
                run()
            finally:
                baton.end_turn(turn)

        self.run = in_turn
        original(self)

    tools.patches.set(threading.Thread, "start", start)


def _follow_waits(tools: PinTools, baton: Baton) -> None:
    wait, join = threading.Condition.wait, threading.Thread.join

    @functools.wraps(wait)
    def waits(self: Any, timeout: float | None = None) -> bool:
        turn = baton.mine()
        if turn is None:
            return wait(self, timeout)
        baton.give_up(turn)
        try:
            return wait(self, timeout)
        finally:  # the lock is this thread's again, and the one that runs may want it
            saved = self._release_save()
            baton.take(turn)
            self._acquire_restore(saved)

    @functools.wraps(join)
    def joins(self: Any, timeout: float | None = None) -> None:
        turn = baton.mine()
        if turn is None:
            return join(self, timeout)
        baton.give_up(turn)
        try:
            return join(self, timeout)
        finally:
            baton.take(turn)

    def sleeps(function: Any, seconds: Any) -> None:
        turn = baton.mine()
        if turn is None:
            function(seconds)
            return
        baton.give_up(turn)
        try:
            function(seconds)
        finally:
            baton.take(turn)

    tools.patches.set(threading.Condition, "wait", waits)
    tools.patches.set(threading.Thread, "join", joins)
    tools.replace(time, "sleep", sleeps, lambda _: not baton.ended)


def _follow_selectors(tools: PinTools, module: Any, baton: Baton) -> None:
    """A loop of asyncio waits for its sockets and timers, and for tasks in other threads, in a selector."""
    for kind in vars(module).values():
        if isinstance(kind, type) and issubclass(kind, module.BaseSelector) and "select" in vars(kind):
            tools.patches.set(kind, "select", _selecting(vars(kind)["select"], baton))


def _selecting(select: Any, baton: Baton) -> Any:
    @functools.wraps(select)
    def selects(self: Any, timeout: float | None = None) -> Any:
        turn = baton.mine()
        if turn is None or (timeout is not None and timeout <= 0):
            return select(self, timeout)
        baton.give_up(turn)
        try:
            return select(self, timeout)
        finally:
            baton.take(turn)

    return selects


def _follow_tasks(tools: PinTools, module: Any, baton: Baton) -> None:
    """A task of an executor takes part while it runs; the thread that runs it does not."""
    item = module._WorkItem
    made, run, get_frame = item.__init__, item.run, calling_frame
    asked = Asker(tools.asker.ranks, _HANDING_ON).is_asked

    @functools.wraps(made)
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        self._samebits_turn = baton.new_turn() if asked(get_frame(1)) and not baton.ended else None

    @functools.wraps(run)
    def run_in_turn(self: Any, *args: Any, **kwargs: Any) -> None:
        turn = getattr(self, "_samebits_turn", None)
        if turn is None or baton.ended:
            run(self, *args, **kwargs)
            return
        baton.begin(turn)
        try:
            run(self, *args, **kwargs)
        finally:
            baton.end_turn(turn)

    tools.patches.set(item, "__init__", make)
    tools.patches.set(item, "run", run_in_turn)
