"""The intervention `serial-threads`: one of the script's threads runs at a time, until it waits or ends.

A scheduler decides which thread runs. A thread yields where it waits (`Condition.wait`, and so queues, events
and futures; `Thread.join`; `time.sleep`; the loop of asyncio) and where it ends; the next one is the oldest
that is ready. Threads come in the order in which they were started, the tasks of a `ThreadPoolExecutor` in
the order in which they were submitted.

A thread that waits in C code, where that cannot be seen, is noticed because it sleeps and uses no processor.
Then the next one runs. A thread that neither waits nor ends for `LIMIT_S` while others are ready ends the
intervention.
"""

from __future__ import annotations

import _thread
import functools
import os
import threading
import time
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import Asker, calling_frame
from samebits.interventions.intervention import Intervention

if TYPE_CHECKING:
    from samebits.interventions.intervention import Replacements

LIMIT_S = 10.0
_POLL_S = 0.001
_SETTLE_POLLS = 3  # threads that were woken by the last one come forward meanwhile
_BLOCKED_POLLS = 40
_BUSY_S = 0.01
_HANDING_ON = frozenset({"concurrent", "asyncio"})
# The originals: interventions on the clock and on the process replace them.
_sleep, _monotonic, _process_time, _getpid = time.sleep, time.monotonic, time.process_time, os.getpid


class Participant:
    """A thread, or a task, that takes part.

    Args:
        number: its position in the order.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.native = 0
        self.gate = _thread.allocate_lock()
        self.gate.acquire()

    def asleep(self) -> bool:
        """Tell whether its thread waits for something, as far as the system tells."""
        try:
            with open(f"/proc/self/task/{self.native}/stat", "rb") as file:
                return file.read().rpartition(b")")[2].split()[0] in (b"S", b"D")
        except (OSError, IndexError):
            return True  # the processor time decides alone


class ThreadScheduler:
    """Decides which of the script's threads runs."""

    def __init__(self) -> None:
        self._own = threading.local()
        self._reset()
        self.ended = False

    def _reset(self) -> None:
        self._process = _getpid()
        self._lock = _thread.allocate_lock()
        self._numbers = 0
        self._ready: list[Participant] = []
        self._running: Participant | None = None
        self._watched = False

    def new_participant(self) -> Participant:
        """Return a participant for what the running thread starts; that one takes part from now on."""
        if self._process != _getpid():  # a forked child: its other threads are not there
            self._own = threading.local()
            self._reset()
        mine = self.current()
        with self._lock:
            if mine is None:
                mine = self._own.participant = self._made()
                mine.native = threading.get_native_id()
                if self._running is None:
                    self._running = mine
            return self._made()

    def _made(self) -> Participant:
        self._numbers += 1
        return Participant(self._numbers)

    def current(self) -> Participant | None:
        """Return the participant of this thread, if it takes part."""
        if self.ended or self._process != _getpid():
            return None
        return getattr(self._own, "participant", None)

    def begin(self, participant: Participant) -> None:
        """Let this thread take part as that participant; return when it is its turn."""
        self._own.participant = participant
        participant.native = threading.get_native_id()
        self.resume(participant)

    def resume(self, participant: Participant) -> None:
        """Wait until it may run."""
        with self._lock:
            if self.ended or self._running is participant:
                return
            self._ready.append(participant)
            if not self._watched:
                self._watched = True
                _thread.start_new_thread(self._watch, (self._process,))
        participant.gate.acquire()

    def suspend(self, participant: Participant) -> None:
        """Let others run."""
        with self._lock:
            if self._running is participant:
                self._running = None

    def leave(self, participant: Participant) -> None:
        """End the participation of this thread."""
        self._own.participant = None
        self.suspend(participant)

    def end(self) -> None:
        """Let all threads run."""
        with self._lock:
            self.ended = True
            ready, self._ready = self._ready, []
        for participant in ready:
            participant.gate.release()

    def _watch(self, process: int) -> None:
        """Choose which participant runs next, in a thread that holds none of the locks that others need."""
        settled, watch = 0, _Watch()
        while not self.ended and _getpid() == process:
            _sleep(_POLL_S)
            running = self._running
            settled = settled + 1 if running is None else 0
            if running is None and settled >= _SETTLE_POLLS:
                self._run_next()
            elif running is not None and self._ready:
                activity = watch.poll(running)
                if activity is _Activity.BLOCKED:
                    self.suspend(running)
                elif activity is _Activity.TOO_LONG:
                    self.end()
            else:
                watch = _Watch()

    def _run_next(self) -> None:
        with self._lock:
            if self._running is None and self._ready:
                participant = min(self._ready, key=lambda participant: participant.number)
                self._ready.remove(participant)
                self._running = participant
                participant.gate.release()


class _Activity(Enum):
    """The activity of the running thread when it was last polled."""

    RUNS = auto()
    BLOCKED = auto()
    """It waits for something that cannot be seen."""
    TOO_LONG = auto()
    """It has run for `LIMIT_S` without a wait."""


class _Watch:
    """The activity of the running thread since it was first polled."""

    def __init__(self) -> None:
        self._participant: Participant | None = None
        self._since = self._busy = 0.0
        self._polls = 0

    def poll(self, participant: Participant) -> _Activity:
        """Return what the running participant does."""
        if self._participant is not participant:
            self._participant, self._since = participant, _monotonic()
            self._polls = 0
        if not self._polls or not participant.asleep():
            self._busy, self._polls = _process_time(), 0
        self._polls += 1
        if self._polls > _BLOCKED_POLLS:
            if _process_time() - self._busy < _BUSY_S + 0.25 * _POLL_S * self._polls:
                self._polls = 0
                return _Activity.BLOCKED
            self._polls = 0  # it waits for threads that work for it
        return _Activity.TOO_LONG if _monotonic() - self._since > LIMIT_S else _Activity.RUNS


def serialize_threads(replacements: Replacements) -> None:
    """Run the script's threads one at a time."""
    scheduler = ThreadScheduler()
    replacements.at_end.append(scheduler.end)
    _follow_threads(replacements, scheduler)
    _follow_waits(replacements, scheduler)
    replacements.imports.on_import(
        "concurrent.futures.thread", lambda module: _follow_tasks(replacements, module, scheduler)
    )
    replacements.imports.on_import(
        "selectors", lambda module: _follow_selectors(replacements, module, scheduler)
    )


def _follow_threads(replacements: Replacements, scheduler: ThreadScheduler) -> None:
    original, get_frame = threading.Thread.start, calling_frame

    @functools.wraps(original)
    def start(self: Any) -> None:
        if scheduler.ended or not replacements.asker.is_direct(get_frame(1)):
            original(self)
            return
        participant, run = scheduler.new_participant(), self.run

        def in_participant() -> None:
            scheduler.begin(participant)
            try:
                run()
            finally:
                scheduler.leave(participant)

        self.run = in_participant
        original(self)

    replacements.patches.set(threading.Thread, "start", start)


def _follow_waits(replacements: Replacements, scheduler: ThreadScheduler) -> None:
    wait, join = threading.Condition.wait, threading.Thread.join

    @functools.wraps(wait)
    def waits(self: Any, timeout: float | None = None) -> bool:
        participant = scheduler.current()
        if participant is None:
            return wait(self, timeout)
        scheduler.suspend(participant)
        try:
            return wait(self, timeout)
        finally:  # the lock is this thread's again, and the one that runs may want it
            saved = self._release_save()
            scheduler.resume(participant)
            self._acquire_restore(saved)

    @functools.wraps(join)
    def joins(self: Any, timeout: float | None = None) -> None:
        participant = scheduler.current()
        if participant is None:
            return join(self, timeout)
        scheduler.suspend(participant)
        try:
            return join(self, timeout)
        finally:
            scheduler.resume(participant)

    def sleeps(function: Any, seconds: Any) -> None:
        participant = scheduler.current()
        if participant is None:
            function(seconds)
            return
        scheduler.suspend(participant)
        try:
            function(seconds)
        finally:
            scheduler.resume(participant)

    replacements.patches.set(threading.Condition, "wait", waits)
    replacements.patches.set(threading.Thread, "join", joins)
    replacements.replace(time, "sleep", sleeps, lambda _: not scheduler.ended)


def _follow_selectors(replacements: Replacements, module: Any, scheduler: ThreadScheduler) -> None:
    """Follow selectors, in which an asyncio loop waits for sockets, timers and tasks in other threads."""
    for kind in vars(module).values():
        if isinstance(kind, type) and issubclass(kind, module.BaseSelector) and "select" in vars(kind):
            replacements.patches.set(kind, "select", _selecting(vars(kind)["select"], scheduler))


def _selecting(select: Any, scheduler: ThreadScheduler) -> Any:
    @functools.wraps(select)
    def selects(self: Any, timeout: float | None = None) -> Any:
        participant = scheduler.current()
        if participant is None or (timeout is not None and timeout <= 0):
            return select(self, timeout)
        scheduler.suspend(participant)
        try:
            return select(self, timeout)
        finally:
            scheduler.resume(participant)

    return selects


def _follow_tasks(replacements: Replacements, module: Any, scheduler: ThreadScheduler) -> None:
    """Let a task of an executor take part while it runs; the thread that runs it does not."""
    item = module._WorkItem
    made, run, get_frame = item.__init__, item.run, calling_frame
    asked = Asker(replacements.asker.ranks, _HANDING_ON).is_asked

    @functools.wraps(made)
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        self._samebits_participant = (
            scheduler.new_participant() if asked(get_frame(1)) and not scheduler.ended else None
        )

    @functools.wraps(run)
    def run_in_participant(self: Any, *args: Any, **kwargs: Any) -> None:
        participant = getattr(self, "_samebits_participant", None)
        if participant is None or scheduler.ended:
            run(self, *args, **kwargs)
            return
        scheduler.begin(participant)
        try:
            run(self, *args, **kwargs)
        finally:
            scheduler.leave(participant)

    replacements.patches.set(item, "__init__", make)
    replacements.patches.set(item, "run", run_in_participant)


def _obstacle() -> str:
    needed = hasattr(time, "pthread_getcpuclockid")
    return "" if needed else "the clock of a thread (pthread_getcpuclockid) is not there"


SERIAL_THREADS = Intervention(
    "serial-threads",
    "with the script's threads run one at a time",
    patch=serialize_threads,
    obstacle=_obstacle,
    limits="processes, threads of C code; a thread that waits in C code is passed over",
)
