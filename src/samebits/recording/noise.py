"""Disturbances of a run under `--stress`: they must not matter to a script that repeats."""

from __future__ import annotations

import _thread
import random
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits._runtime.frames import pass_on
from samebits.records.notes import Note, NoteCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

_LONGEST_PAUSE_S = 0.004
_SCRATCH = 1 << 22  # elements
_MOST_KERNELS = 20  # in a row


class SchedulingNoise:
    """A thread that takes the interpreter lock at random moments, and random switch intervals.

    Args:
        seed: of the disturbance; it has its own generator, not the script's.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._running = False
        self._interval_s = sys.getswitchinterval()

    def start(self) -> None:
        """Begin to disturb; `threading` does not list the thread, so the script does not see it."""
        self._running = True
        _thread.start_new_thread(self._disturb, ())

    def stop(self) -> None:
        """End the thread and restore the switch interval."""
        self._running = False
        sys.setswitchinterval(self._interval_s)

    def _disturb(self) -> None:
        draw = self._random
        while self._running:
            time.sleep(draw.uniform(0.0, _LONGEST_PAUSE_S))
            sys.setswitchinterval(draw.choice((1e-5, 1e-4, 5e-3)))
            end = time.perf_counter() + draw.uniform(0.0, 0.001)
            while time.perf_counter() < end:
                pass


class _Lane(NamedTuple):
    """What the noise has on one device."""

    stream: Any
    scratch: Any


class DeviceNoise:
    """A thread that gives each GPU in use work at random moments, on a stream of its own.

    The script's kernels then find other multiprocessors free, so their blocks run in another order. Where
    they add by atomic operations, that order decides the sum.

    Args:
        seed: of the disturbance; it draws from no generator of the script or of torch.
        quietly: a context in which nothing is recorded.

    Attributes:
        failure: the error that ended it; empty where none did.
    """

    def __init__(self, seed: int, quietly: AbstractContextManager[None]) -> None:
        self.failure = ""
        self._random = random.Random(seed)
        self._quietly = quietly
        self._running = False
        self._working = threading.Lock()
        self._withdraw: Callable[[], None] = lambda: None
        self._torch: Any = None
        self._lanes: dict[int, _Lane] = {}

    def start(self, torch: Any) -> None:
        """Begin to disturb once the script uses CUDA."""
        from samebits._torch.cuda_start import when_cuda_starts  # which imports torch

        self._torch, self._running = torch, True
        self._withdraw = when_cuda_starts(self._begin)

    def stop(self) -> None:
        """End the thread; what it has queued goes on."""
        self._running = False
        self._withdraw()
        with self._working:
            self._lanes.clear()

    def _begin(self) -> None:
        _thread.start_new_thread(self._disturb, ())

    def _disturb(self) -> None:
        try:
            while self._running:
                time.sleep(self._random.uniform(0.0, _LONGEST_PAUSE_S))
                with self._working, self._quietly:
                    self._load_all()
        except Exception as error:  # noqa: BLE001 - it must not reach the script, which goes on without it
            pass_on(error)
            self.failure = f"{type(error).__name__}: {error}".partition("\n")[0]

    def _load_all(self) -> None:
        cuda = self._torch.cuda
        for device in range(cuda.device_count()):
            # Only where the script has memory: to ask another device for work would begin to use it.
            if self._running and cuda.memory_reserved(device):
                self._load(self._lanes.get(device) or self._open(device))

    def _open(self, device: int) -> _Lane:
        torch = self._torch
        stream = torch.Stream(device=f"cuda:{device}")  # not noted as one of the script's
        with torch.cuda.stream(stream):
            lane = self._lanes[device] = _Lane(stream, torch.zeros(_SCRATCH, device=f"cuda:{device}"))
        return lane

    def _load(self, lane: _Lane) -> None:
        """Queue some kernels. Nothing is asked of the stream: that would end a capture of another thread."""
        draw = self._random
        with self._torch.cuda.stream(lane.stream), self._torch.no_grad():
            for _ in range(draw.randrange(1, _MOST_KERNELS)):
                lane.scratch[: draw.randrange(1, _SCRATCH)].add_(1)


class Noise:
    """All disturbances of a run.

    Args:
        seed: of them.
        quietly: a context in which nothing is recorded.
    """

    def __init__(self, seed: int, quietly: AbstractContextManager[None]) -> None:
        self._scheduling = SchedulingNoise(seed)
        self._devices = DeviceNoise(seed, quietly)

    def start(self) -> None:
        """Begin to disturb the interpreter."""
        self._scheduling.start()

    def start_on_devices(self, torch: Any) -> None:
        """Begin to disturb the GPUs that the script will use."""
        self._devices.start(torch)

    def notes(self) -> list[Note]:
        """Return a note where the load on the GPU ended before it was asked to."""
        failure = self._devices.failure
        return [Note.of(NoteCode.NO_LOAD, failure)] if failure else []

    def stop(self) -> None:
        """End both."""
        self._scheduling.stop()
        self._devices.stop()
