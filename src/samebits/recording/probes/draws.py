"""The probe that records draws: values from outside torch, with the line of user code that took them."""

from __future__ import annotations

import ctypes
import datetime as dt
import functools
import os
import random
import struct
import time
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line
from samebits._runtime.frames import USER, calling_frame
from samebits._runtime.patching import Patches, StaticTypePatches
from samebits._torch.core import numpy_state_address
from samebits.recording.probes.draw_functions import (
    entropy,
    given,
    global_draw,
    now,
    reseeding,
    user_fact,
    watch_addresses,
    watch_numpy_entropy,
    watch_numpy_object,
    watch_python_object,
    watch_unwritten,
)
from samebits.recording.probes.draw_log import DrawLog
from samebits.recording.probes.draw_system import (
    watch_facts,
    watch_files,
    watch_futures,
    watch_pools,
    watch_queues,
)
from samebits.recording.probes.listings import scan
from samebits.rng.sources.python_random import python_state_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from samebits._runtime.imports import PostImport
    from samebits.recording._recorder import Recorder
    from samebits.recording.probes.worker_draws import WorkerDraws

_CLOCKS = (
    "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
    "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns",
)  # fmt: skip
_CLOCK_UNLESS_GIVEN = {"localtime": 0, "gmtime": 0, "ctime": 0, "strftime": 1}  # arguments without a time
_PROCESS = ("getpid", "getppid", "getloadavg")
_NO_DRAWS = ("seed", "getstate", "setstate", "get_state", "set_state")


class DrawProbe:
    """Records `draw` events.

    docs/reference/recording.md says what counts as a draw. The probe is put in place before the script
    begins, so that `from time import time` gets a proxy too; modules imported before keep the originals.

    Args:
        recorder: where events go.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._log = DrawLog(recorder)
        self._workers: WorkerDraws | None = None
        self._patches = Patches()
        self._static = StaticTypePatches()

    def install(self, imports: PostImport) -> None:
        """Begin to watch, with modules that are imported later as well.

        Args:
            imports: calls back when a module is imported.
        """
        self._recorder.steps.listen(self._log.end_step, first=True)  # others may end the run
        self._watch_clocks()
        self._watch_system()
        self._watch_python()
        imports.on_import("uuid", self._watch_uuid)
        imports.on_import("tempfile", self._watch_tempfile)
        imports.on_import("socket", lambda module: self._replace(module, "gethostname", user_fact))
        imports.on_import(
            "concurrent.futures", lambda module: watch_futures(module, self._patches, self._log)
        )
        imports.on_import("multiprocessing.pool", lambda pool: watch_pools(pool, self._patches, self._log))
        imports.on_import("numpy.random", self._watch_numpy)
        imports.on_import("numpy", lambda numpy: watch_unwritten(numpy, self._patches, self._log))
        imports.on_torch(self._watch_torch)
        watch_addresses(self._patches, self._log, imports)
        watch_facts(self._patches, self._log, imports)
        watch_files(self._patches, self._log)
        watch_queues(self._patches, self._log, imports)

    def record_end(self) -> None:
        """Record the values that were only counted since the last boundary."""
        if self._recorder.active:
            self._log.flush(self._recorder.step)

    def remove(self) -> None:
        """Put everything back; the proxies that the script still holds only call the originals."""
        self._recorder.steps.stop_listening(self._log.end_step)
        if self._workers is not None:
            self._workers.remove()
        self._patches.restore()
        self._static.restore()

    def _replace(self, module: Any, name: str, make_proxy: Callable[..., Any], *more: Any) -> None:
        function = getattr(module, name, None)
        if function is not None:
            op = f"{module.__name__}.{name}"
            self._patches.set(module, name, make_proxy(function, op, self._log, *more))

    def _watch_clocks(self) -> None:
        for name in _CLOCKS:
            self._replace(time, name, user_fact)
        for name, n_before in _CLOCK_UNLESS_GIVEN.items():
            self._replace(time, name, now, n_before)
        for name in ("now", "utcnow"):  # `today` asks `time.time`
            self._watch_datetime(name)

    def _watch_datetime(self, name: str) -> None:
        log, original = self._log, vars(dt.datetime)[name]

        @functools.wraps(original)
        def current(cls: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                value = original.__get__(None, cls)(*args, **kwargs)
            except BaseException as error:
                leave_no_line(error)
                raise
            frame = calling_frame()
            if log.active and log.ranks.of(frame) == USER:
                log.taken_by_user(f"datetime.datetime.{name}", frame, str(value))
            return value

        self._static.set(dt.datetime, name, classmethod(current))

    def _watch_system(self) -> None:
        for name in _PROCESS:
            self._replace(os, name, user_fact)
        urandom = entropy(os.urandom, "os.urandom", self._log)
        self._patches.set(os, "urandom", urandom)
        if hasattr(random, "_urandom"):  # what `SystemRandom` and `secrets` draw from
            self._patches.set(random, "_urandom", urandom)
        self._replace(os, "listdir", entropy)
        self._replace(os, "scandir", scan)

    def _watch_python(self) -> None:
        log, state = self._log, _python_state()
        instance = getattr(random, "_inst", None)
        names = _bound_to(instance, vars(random))
        for name in names:
            self._replace(random, name, global_draw, state)
        if instance is not None:
            watch_python_object(self._patches, log, names, state)
        self._replace(random, "seed", reseeding, state)
        original = random.Random.seed

        @functools.wraps(original)
        def seed(self: random.Random, a: Any = None, *args: Any, **kwargs: Any) -> None:
            try:
                original(self, a, *args, **kwargs)
            except BaseException as error:
                leave_no_line(error)
                raise
            if a is None and log.active:
                frame = calling_frame()
                if frame.f_globals.get("__name__") != "tempfile":  # its names are recorded
                    log.taken("random.Random", frame, words_of(self), through=True)

        self._patches.set(random.Random, "seed", seed)

    def _watch_uuid(self, uuid: Any) -> None:
        log, original = self._log, uuid.uuid1

        @functools.wraps(original)
        def uuid1(*args: Any, **kwargs: Any) -> Any:
            value = original(*args, **kwargs)
            # As bytes, which are not kept as text: they tell the machine.
            log.taken("uuid.uuid1", calling_frame(), value.bytes)
            return value

        self._patches.set(uuid, "uuid1", uuid1)

    def _watch_tempfile(self, tempfile: Any) -> None:
        names = getattr(tempfile, "_RandomNameSequence", None)
        if names is None:
            return
        log, original = self._log, names.__next__

        @functools.wraps(original)
        def following(self: Any) -> str:
            name: str = original(self)
            log.taken("tempfile", calling_frame(), name)
            return name

        self._patches.set(names, "__next__", following)

    def _watch_numpy(self, module: Any) -> None:
        log = self._log
        instance = getattr(module.mtrand, "_rand", None)
        names = _bound_to(instance, {name: getattr(module, name, None) for name in module.__all__})
        for name in names:
            self._replace(module, name, global_draw, _numpy_state)
        if instance is not None:
            watch_numpy_object(self._static, log, names, _numpy_state)
        watch_numpy_entropy(self._patches, self._static, log)

    def _watch_torch(self, torch: Any) -> None:
        """Watch what seeds a generator from the operating system; `torch.seed` calls it too."""
        log, original = self._log, torch.Generator.seed

        @functools.wraps(original)
        def seed(self: Any) -> int:
            value = int(original(self))
            log.taken("torch.Generator.seed", calling_frame(), value, through=True)
            return value

        self._static.set(torch.Generator, "seed", seed)
        for name in ("set_num_threads", "set_num_interop_threads"):
            self._replace(torch, name, given)
        self._watch_workers()

    def _watch_workers(self) -> None:
        from samebits.recording.probes.worker_draws import WorkerDraws

        self._workers = WorkerDraws(self._recorder, self._log)
        self._workers.install()


def _bound_to(instance: object, functions: Mapping[str, object]) -> list[str]:
    """Return the names of the functions that are methods of a global generator and draw from it."""
    return [
        name
        for name, function in functions.items()
        if getattr(function, "__self__", None) is instance is not None and name not in _NO_DRAWS
    ]


def _python_state() -> Callable[[], bytes]:
    """Return a function that reads the state of Python's global generator."""
    address = python_state_address()
    if address is not None:
        return lambda: ctypes.string_at(*address)
    return lambda: repr(random.getstate()).encode()


def words_of(generator: random.Random) -> bytes:
    """Return the state of a generator, as many bytes in every run.

    Memory of another size would move what the script allocates next, whose addresses are held.
    """
    words = random.Random.getstate(generator)[1]
    return struct.pack(f"{len(words)}I", *words)


def _numpy_state() -> bytes:
    address = numpy_state_address()
    return b"" if address is None else ctypes.string_at(*address)
