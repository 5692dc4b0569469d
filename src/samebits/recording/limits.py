"""What can end a run before the script does: a number of steps, or the first difference."""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING

from samebits.recording.events import END, several_threads
from samebits.recording.runner import StopRun
from samebits.recording.store import RecordReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.recording.events import Event, TensorInfo
    from samebits.recording.recorder import Recorder


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
        self._expected: Iterator[Event] = iter(self._reader.events(kinds=("step",)))

    def __call__(self, infos: tuple[TensorInfo, ...], digests: bytes) -> None:
        """Called at each boundary."""
        if not infos or not self._in_order:
            return
        with self._turn:
            self._threads.add(threading.current_thread().name)
            expected = next(islice(self._expected, 1), None)
            if expected is not None and expected.op != END and not self._differs(expected, infos, digests):
                return
            # Where several threads make steps, which of them is next says nothing.
            self._in_order = len(self._threads) == 1 and not several_threads(self._reader.events(("step",)))
        if self._in_order:
            stop(self._recorder)

    def _differs(self, expected: Event, infos: tuple[TensorInfo, ...], digests: bytes) -> bool:
        if b"".join(expected.digests) == digests and expected.tensors == infos:
            return False
        theirs = {(i.role, i.name): d for i, d in zip(expected.tensors, expected.digests, strict=True)}
        ours = {(info.role, info.name): digests[16 * n : 16 * n + 16] for n, info in enumerate(infos)}
        shared = theirs.keys() | ours.keys()
        return any(theirs.get(key) != ours.get(key) for key in shared if key[1] not in self._excused)


def stop(recorder: Recorder) -> None:
    """End the run here: record nothing more, and unwind the script if this is its main thread."""
    recorder.stop(early=True)
    if threading.current_thread() is threading.main_thread():
        raise StopRun
