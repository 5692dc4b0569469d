"""The clock pin: time begins at a fixed moment and goes on by what is done with it, not by itself.

Each thread has a clock of its own, so that the order in which threads run does not matter. The first reading
takes 1 ms and each later one a little longer, so that a loop that works until a moment ends after hundreds of
readings, whether that moment is seconds or minutes away; a sleep takes what it was asked to take, and sleeps
too, so that other threads get as far as they would.
"""

from __future__ import annotations

import datetime as dt
import functools
import threading
import time
from typing import TYPE_CHECKING, Any

from samebits.determinism.pins.timers import VirtualTimers
from samebits.hooks.asking import Asker
from samebits.hooks.frames import calling_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.determinism.pins.tools import PinTools

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


def pin_clock(tools: PinTools) -> None:
    """Give user code, and libraries on its behalf, the virtual clock.

    What torch and the standard library measure for themselves (time limits, intervals) is real.
    """
    clock = VirtualClock()
    timers = VirtualTimers(clock)
    rule = _rule(tools.asker)

    def read() -> int:
        now = clock.read()
        timers.look()
        return now

    _pin_readings(tools, read, rule)
    _pin_sleep(tools, clock, timers, rule)
    for name in ("now", "utcnow"):
        _pin_datetime(tools, name, read, rule)
    timers.install(tools, rule)
    tools.imports.on_import("resource", lambda module: _pin_usage(tools, module, read, rule))
    tools.imports.on_torch(lambda torch: _pin_devices(tools, torch, read))


def _rule(asker: Asker) -> Callable[[Any], bool]:
    handed = Asker(asker.ranks, _HANDING_ON)

    def rule(frame: Any) -> bool:
        return asker.is_direct(frame) or handed.is_user_asked(_outside_of_timeit(frame))

    return rule


def _outside_of_timeit(frame: Any) -> Any:
    """The code that `timeit` makes belongs to it, and has a file name of its own."""
    while frame is not None and frame.f_code.co_filename == "<timeit-src>":
        frame = frame.f_back
    return frame


def _pin_readings(tools: PinTools, read: Callable[[], int], rule: Any) -> None:
    for name, base in _CLOCKS.items():
        tools.replace(time, name, lambda _, base=base: (base + read()) / 1e9, rule)
        tools.replace(time, f"{name}_ns", lambda _, base=base: base + read(), rule)

    def base_of(number: int) -> int:
        if number == time.CLOCK_REALTIME:
            return START_NS
        of_process = (
            getattr(time, name, None) for name in ("CLOCK_PROCESS_CPUTIME_ID", "CLOCK_THREAD_CPUTIME_ID")
        )
        return _OF_PROCESS_NS if number in of_process else _SINCE_BOOT_NS

    tools.replace(time, "clock_gettime", lambda _, number: (base_of(number) + read()) / 1e9, rule)
    tools.replace(time, "clock_gettime_ns", lambda _, number: base_of(number) + read(), rule)
    localtime = time.localtime

    def of_now(function: Any, n_before: int, *args: Any) -> Any:
        if len(args) > n_before and args[n_before] is not None:
            return function(*args)
        seconds = (START_NS + read()) // 10**9
        takes_a_tuple = function.__name__ in ("asctime", "strftime")
        return function(*args[:n_before], localtime(seconds) if takes_a_tuple else seconds)

    for name, n_before in _WITHOUT_A_TIME.items():
        tools.replace(time, name, lambda f, *args, n=n_before: of_now(f, n, *args), rule)


def _pin_sleep(tools: PinTools, clock: VirtualClock, timers: VirtualTimers, rule: Any) -> None:
    def sleep(function: Any, seconds: Any) -> None:
        function(seconds)
        clock.sleep(seconds)
        timers.look()

    tools.replace(time, "sleep", sleep, rule)


def _pin_datetime(tools: PinTools, name: str, read: Callable[[], int], rule: Any) -> None:
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

    tools.static.set(dt.datetime, name, classmethod(current))


def _pin_usage(tools: PinTools, module: Any, read: Callable[[], int], rule: Any) -> None:
    """The times of `getrusage`; its memory is of another pin."""

    def getrusage(function: Any, *args: Any) -> Any:
        usage, seconds = function(*args), (_OF_PROCESS_NS + read()) / 1e9
        return type(usage)((seconds, seconds / 8, *usage[2:]))

    tools.replace(module, "getrusage", getrusage, rule)


def _pin_devices(tools: PinTools, torch: Any, read: Callable[[], int]) -> None:
    """The time between two events of a GPU."""
    event = getattr(torch.cuda, "Event", None)
    if event is None:
        return
    original = event.elapsed_time

    @functools.wraps(original)
    def elapsed_time(self: Any, end_event: Any) -> float:
        original(self, end_event)
        read()
        return 1.0

    tools.patches.set(event, "elapsed_time", elapsed_time)
