"""The intervention `clock`: time begins at a fixed moment and passes only when it is read or slept.

Each thread has its own clock, so that the order in which threads run does not matter. The first reading takes
1 ms and each later one a little longer. A loop that works until some moment thus ends after hundreds of
readings, whether that moment is seconds or minutes away. A sleep takes the time that it was asked for, and
really sleeps, so that other threads get as far as they would. Timers (`signal.setitimer`, `signal.alarm`)
follow the same clock.
"""

from __future__ import annotations

import datetime as dt
import functools
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import Asker, calling_frame
from samebits.interventions.intervention import Intervention

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.interventions.intervention import Replacements

START_NS = 1_767_270_896_789_012_345
"""2026-01-01 12:34:56.789012345 UTC."""
READING_NS = 1_000_000
_SLOWER_EVERY = 32  # readings: after so many a reading takes 1 ms more
_SINCE_BOOT_NS = 4_096_123_456_789
_OF_PROCESS_NS = 1_234_567_890
# Modules that read the clock for whoever calls them.
_HANDING_ON = frozenset({"timeit"})
_CLOCKS = {
    "time": START_NS,
    "monotonic": _SINCE_BOOT_NS,
    "perf_counter": _SINCE_BOOT_NS,
    "process_time": _OF_PROCESS_NS,
    "thread_time": _OF_PROCESS_NS,
}
_WITHOUT_A_TIME = {"localtime": 0, "gmtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
_SIGNALS = {"ITIMER_REAL": "SIGALRM", "ITIMER_VIRTUAL": "SIGVTALRM", "ITIMER_PROF": "SIGPROF"}


class VirtualClock(threading.local):
    """The time that has gone by in this thread, in nanoseconds."""

    elapsed = 0
    readings = 0

    def read(self) -> int:
        """Take a reading."""
        self.elapsed += READING_NS + self.readings * READING_NS // _SLOWER_EVERY
        self.readings += 1
        return self.elapsed

    def sleep(self, seconds: Any) -> None:
        """Let that much time go by."""
        self.elapsed += max(0, int(seconds * 1e9))


def fix_clock(replacements: Replacements) -> None:
    """Give user code, and libraries on its behalf, the virtual clock.

    Torch and the standard library still get the real time for their own limits and intervals.
    """
    clock = VirtualClock()
    timers = VirtualTimers(clock)
    rule = _rule(replacements.asker)

    def read() -> int:
        now = clock.read()
        timers.send_due()
        return now

    _fix_readings(replacements, read, rule)
    _fix_sleep(replacements, clock, timers, rule)
    for name in ("now", "utcnow"):
        _fix_datetime(replacements, name, read, rule)
    timers.install(replacements, rule)
    replacements.imports.on_import("resource", lambda module: _fix_usage(replacements, module, read, rule))
    replacements.imports.on_torch(lambda torch: _fix_device_events(replacements, torch, read))


def _rule(asker: Asker) -> Callable[[Any], bool]:
    handed = Asker(asker.ranks, _HANDING_ON)

    def rule(frame: Any) -> bool:
        return asker.is_direct(frame) or handed.is_user_asked(_outside_of_timeit(frame))

    return rule


def _outside_of_timeit(frame: Any) -> Any:
    """Return the innermost frame outside of the code that `timeit` makes, which has its own file name."""
    while frame is not None and frame.f_code.co_filename == "<timeit-src>":
        frame = frame.f_back
    return frame


def _fix_readings(replacements: Replacements, read: Callable[[], int], rule: Any) -> None:
    for name, base in _CLOCKS.items():
        replacements.replace(time, name, lambda _, base=base: (base + read()) / 1e9, rule)
        replacements.replace(time, f"{name}_ns", lambda _, base=base: base + read(), rule)

    def base_of(number: int) -> int:
        if number == getattr(time, "CLOCK_REALTIME", 0):
            return START_NS
        of_process = (
            getattr(time, name, None) for name in ("CLOCK_PROCESS_CPUTIME_ID", "CLOCK_THREAD_CPUTIME_ID")
        )
        return _OF_PROCESS_NS if number in of_process else _SINCE_BOOT_NS

    replacements.replace(time, "clock_gettime", lambda _, number: (base_of(number) + read()) / 1e9, rule)
    replacements.replace(time, "clock_gettime_ns", lambda _, number: base_of(number) + read(), rule)
    localtime = time.localtime

    def of_now(function: Any, n_before: int, *args: Any) -> Any:
        if len(args) > n_before and args[n_before] is not None:
            return function(*args)
        seconds = (START_NS + read()) // 10**9
        takes_a_tuple = function.__name__ in ("asctime", "strftime")
        return function(*args[:n_before], localtime(seconds) if takes_a_tuple else seconds)

    for name, n_before in _WITHOUT_A_TIME.items():
        replacements.replace(time, name, lambda f, *args, n=n_before: of_now(f, n, *args), rule)


def _fix_sleep(replacements: Replacements, clock: VirtualClock, timers: VirtualTimers, rule: Any) -> None:
    def sleep(function: Any, seconds: Any) -> None:
        function(seconds)
        clock.sleep(seconds)
        timers.send_due()

    replacements.replace(time, "sleep", sleep, rule)


def _fix_datetime(replacements: Replacements, name: str, read: Callable[[], int], rule: Any) -> None:
    original = vars(dt.datetime)[name]
    get_frame = calling_frame

    @functools.wraps(original)
    def current(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not rule(get_frame(1)):
            return original.__get__(None, cls)(*args, **kwargs)
        zone = args[0] if args else kwargs.get("tz")
        seconds, rest = divmod(START_NS + read(), 10**9)
        moment = cls.fromtimestamp(seconds, dt.timezone.utc if name == "utcnow" else zone)
        moment = moment.replace(microsecond=rest // 1000)
        return moment.replace(tzinfo=None) if name == "utcnow" else moment

    replacements.static.set(dt.datetime, name, classmethod(current))


def _fix_usage(replacements: Replacements, module: Any, read: Callable[[], int], rule: Any) -> None:
    """Fix the times of `getrusage`; its memory belongs to another intervention."""

    def getrusage(function: Any, *args: Any) -> Any:
        usage, seconds = function(*args), (_OF_PROCESS_NS + read()) / 1e9
        return type(usage)((seconds, seconds / 8, *usage[2:]))

    replacements.replace(module, "getrusage", getrusage, rule)


def _fix_device_events(replacements: Replacements, torch: Any, read: Callable[[], int]) -> None:
    """Fix the time between two events of a GPU."""
    event = getattr(torch.cuda, "Event", None)
    if event is None:
        return
    original = event.elapsed_time

    @functools.wraps(original)
    def elapsed_time(self: Any, end_event: Any) -> float:
        original(self, end_event)
        read()
        return 1.0

    replacements.patches.set(event, "elapsed_time", elapsed_time)


class VirtualTimers:
    """Timers on the virtual clock; their signals come at a reading, a sleep, or a wait for a signal.

    Args:
        clock: the clock of each thread.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._due: dict[int, tuple[int, int]] = {}  # timer -> (when, interval), in nanoseconds

    def install(self, replacements: Replacements, rule: Any) -> None:
        """Replace the functions that set and read timers."""
        if not hasattr(signal, "setitimer"):
            return
        replacements.replace(signal, "setitimer", lambda _, which, *times: self._set(which, *times), rule)
        replacements.replace(signal, "getitimer", lambda _, which: self._left(which), rule)
        replacements.replace(signal, "alarm", lambda _, seconds: self._alarm(seconds), rule)
        replacements.replace(signal, "pause", self._pause, rule)

    def send_due(self) -> None:
        """Send the signals that are due."""
        for which, (when, interval) in tuple(self._due.items()):
            if when <= self._clock.elapsed:
                if interval:
                    self._due[which] = (self._clock.elapsed + interval, interval)
                else:
                    del self._due[which]
                signal.raise_signal(_signal_of(which))

    def _set(self, which: int, seconds: float, interval: float = 0.0) -> tuple[float, float]:
        _signal_of(which)
        before = self._left(which)
        self._due.pop(which, None)
        if seconds:
            self._due[which] = (self._clock.elapsed + int(seconds * 1e9), int(interval * 1e9))
        return before

    def _left(self, which: int) -> tuple[float, float]:
        if which not in self._due:
            return 0.0, 0.0
        when, interval = self._due[which]
        return max(1, when - self._clock.elapsed) / 1e9, interval / 1e9

    def _alarm(self, seconds: int) -> int:
        before, _ = self._set(getattr(signal, "ITIMER_REAL", 0), seconds)
        return -int(-before // 1)

    def _pause(self, function: Any) -> Any:
        """Move the time on to the first timer; without one the script waits for a signal from outside."""
        if not self._due:
            return function()
        self._clock.elapsed = max(self._clock.elapsed, min(when for when, _ in self._due.values()))
        return self.send_due()


def _signal_of(which: int) -> Any:
    for timer, name in _SIGNALS.items():
        if which == getattr(signal, timer):
            return getattr(signal, name)
    raise getattr(signal, "ItimerError", OSError)(22, "Invalid argument")


CLOCK = Intervention(
    "clock",
    "with the clock frozen",
    patch=fix_clock,
    limits="clocks read in C or C++ (`numpy.datetime64('now')`, CUDA kernels) go on; real waits take as "
    "long as they take",
)
