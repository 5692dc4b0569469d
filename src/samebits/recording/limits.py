"""What can end a run before the script does: a number of steps, or the first difference."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from samebits.recording.events import END, several_threads
from samebits.recording.store import RecordReader

if TYPE_CHECKING:
    from samebits.recording.events import Event, TensorInfo
    from samebits.recording.recorder import Recorder


_AHEAD_BYTES = 64 << 20


class StepLimit:
    """Stops the run after a number of step boundaries.

    Args:
        recorder: counts the steps.
        steps: how many.
    """

    def __init__(self, recorder: Recorder, steps: int) -> None:
        self._recorder = recorder
        self._steps = steps

    def __call__(self, _infos: tuple[TensorInfo, ...], _digests: bytes) -> None:
        """Called at each boundary."""
        if self._recorder.step >= self._steps:
            stop(self._recorder)


class ReferenceLimit:
    """Stops the run at the first boundary whose state differs from another record's.

    The other record is read ahead, many steps at a time, and let go of: the script may close descriptors that
    it did not open.

    Args:
        recorder: whose run is followed.
        path: the other record.
        excused: names of tensors that may differ.
    """

    def __init__(self, recorder: Recorder, path: str, excused: tuple[str, ...]) -> None:
        self._recorder = recorder
        self._excused = frozenset(excused)
        self._reader = RecordReader(path)
        self._turn = threading.Lock()  # a script may make its steps in several threads
        self._threads: set[str] = set()
        self._in_order = True
        self._ahead: deque[Event] = deque()
        self._last_read = -1  # number of the last event that was read ahead
        self._last_step: int | None = None
        self._read_ahead()

    def __call__(self, infos: tuple[TensorInfo, ...], digests: bytes) -> None:
        """Called at each boundary."""
        if not infos or not self._in_order:
            return
        with self._turn:
            self._threads.add(threading.current_thread().name)
            expected = self._next()
            if expected is not None and expected.op != END and not self._differs(expected, infos, digests):
                return
            # Where several threads make steps, which of them is next says nothing.
            self._in_order = len(self._threads) == 1 and not several_threads(self._reader.events(("step",)))
            self._reader.let_go()
        if self._in_order:
            stop(self._recorder)

    def _next(self) -> Event | None:
        if not self._ahead:
            self._read_ahead()
        return self._ahead.popleft() if self._ahead else None

    def _read_ahead(self) -> None:
        """Read the steps that come next, as many as fit into some memory."""
        room = _AHEAD_BYTES
        for event in self._reader.events(("step",), self._last_step):
            if event.seq <= self._last_read:
                continue
            if room < 0:
                break
            self._ahead.append(event)
            room -= 60 * len(event.digests) + 200
        if self._ahead:
            self._last_read = self._ahead[-1].seq
            self._last_step = self._ahead[-1].step
        self._reader.let_go()

    def _differs(self, expected: Event, infos: tuple[TensorInfo, ...], digests: bytes) -> bool:
        if b"".join(expected.digests) == digests and expected.tensors == infos:
            return False
        theirs = {(i.role, i.name): d for i, d in zip(expected.tensors, expected.digests, strict=True)}
        ours = {(info.role, info.name): digests[16 * n : 16 * n + 16] for n, info in enumerate(infos)}
        shared = theirs.keys() | ours.keys()
        return any(theirs.get(key) != ours.get(key) for key in shared if key[1] not in self._excused)


def stop(recorder: Recorder) -> None:
    """End the run here: record nothing more, and end the process without going back to the script."""
    recorder.stop()
    recorder.end_run()
