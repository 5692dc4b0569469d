"""The steps of a run: their number, their times, the limits at which the run ends."""

from __future__ import annotations

import functools
import gc
import json
import sys
import threading
import time
from collections import deque
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from samebits._runtime.imports import PostImport
from samebits._runtime.patching import Patches
from samebits._text import files
from samebits.digest.pending import read
from samebits.recording.state_equality import Value, match
from samebits.records.events import END, several_threads
from samebits.records.kinds import EventKind, Role
from samebits.records.reader import RecordReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from samebits.digest.pending import Digests
    from samebits.recording._recorder import Recorder
    from samebits.recording.session import Ending
    from samebits.recording.settings import RecordingSettings
    from samebits.recording.state_equality import Name
    from samebits.records.events import Event, TensorInfo

    Listener = Callable[[tuple[TensorInfo, ...], Digests], None]


class Steps:
    """Counts the steps of a run.

    Attributes:
        count: how many were closed; written here only.
    """

    def __init__(self) -> None:
        self.count = 0
        self._listeners: list[Listener] = []
        self._end: Callable[[], None] = lambda: None

    def listen(self, listener: Listener, *, first: bool = False) -> None:
        """Have a function called at each boundary.

        Args:
            listener: given what describes the state that was just recorded, and its digests.
            first: before those that listen already; they may end the run.
        """
        self._listeners.insert(0 if first else len(self._listeners), listener)

    def stop_listening(self, listener: Listener) -> None:
        """Stop calling a function; does nothing for one that is not called."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def close(self, infos: tuple[TensorInfo, ...], digests: Digests) -> None:
        """Count a step and call the listeners, one of which may end the run.

        Args:
            infos: describe the state; empty where none was recorded.
            digests: of the state.
        """
        self.count += 1
        for listener in self._listeners:
            listener(infos, digests)

    def reopen(self) -> None:
        """Go on with the step that was closed last: one more optimizer belongs to it."""
        self.count -= 1

    def end_by(self, end: Callable[[], None]) -> None:
        """Set the function that ends the run: it ends the process and does not return to the script."""
        self._end = end

    def end_run(self) -> None:
        """End the run here; does nothing where only a part of a process is recorded."""
        self._end()


_AHEAD_BYTES = 64 << 20
State: TypeAlias = "tuple[tuple[TensorInfo, ...], bytes]"
"""Descriptions and digests of the tensors at one boundary."""


class StepLimit:
    """Stops the run after a number of steps.

    Several optimizers may follow one backward pass; the step before shows how many.

    Args:
        recorder: counts the steps.
        steps: how many.
    """

    def __init__(self, recorder: Recorder, steps: int) -> None:
        self._recorder = recorder
        self._steps = steps
        self._step = self._n_boundaries = self._n_before = 0

    def __call__(self, _infos: tuple[TensorInfo, ...], _digests: Digests) -> None:
        """End the run at the boundary that reaches the limit."""
        step = self._recorder.step
        if step != self._step:
            self._step, self._n_before, self._n_boundaries = step, self._n_boundaries, 0
        self._n_boundaries += 1
        if step > self._steps or (step == self._steps and self._n_boundaries >= self._n_before):
            stop(self._recorder)


class ReferenceLimit:
    """Stops the run at the first boundary whose state differs from another record's.

    The other record is read ahead, many steps at a time, and its descriptor is closed in between: the script
    may close descriptors that it did not open.

    Args:
        recorder: whose run is followed.
        path: the other record.
        excluded: names of tensors that may differ.
        is_off: tells whether the other record does not count any more.
    """

    def __init__(
        self, recorder: Recorder, path: str, excluded: tuple[str, ...], is_off: Callable[[], bool]
    ) -> None:
        self._recorder = recorder
        self._excluded = frozenset(excluded)
        self._is_off = is_off
        self._reader = RecordReader(path)
        self._lock = threading.Lock()  # a script may make its steps in several threads
        self._threads: set[str] = set()
        self._in_order = True
        self._ahead: deque[Event] = deque()
        self._last_read = -1  # number of the last event that was read ahead
        self._last_step: int | None = None
        self._expected: list[Event] = []  # those of the step that the run is in
        self._seen: list[State] = []  # the states of this run in that step
        self._before: tuple[list[State], list[State]] = ([], [])
        self._read_ahead()

    def __call__(self, infos: tuple[TensorInfo, ...], digests: Digests) -> None:
        """End the run at the first boundary whose state differs."""
        if not infos or not self._in_order or self._is_off():
            return
        with self._lock:
            self._threads.add(threading.current_thread().name)
            if self._goes_on(infos, read(digests)):
                return
            # Where several threads make steps, their order says nothing.
            self._in_order = len(self._threads) == 1 and not several_threads(
                self._reader.events((EventKind.STEP,))
            )
            self._reader.let_go()
        if self._in_order:
            stop(self._recorder)

    def _goes_on(self, infos: tuple[TensorInfo, ...], digests: bytes) -> bool:
        """Tell whether the run is still like the other one, as far as that is known.

        Several optimizers may follow one backward pass: the state after the last of them counts.
        """
        if not self._expected:
            self._expected, self._seen = self._next_step(), []
        if not self._expected:
            return False
        self._seen.append((infos, digests))
        if len(self._seen) < len(self._expected):
            return True
        theirs = [(event.tensors, b"".join(event.digests)) for event in self._expected]
        same = theirs == self._seen or self._match(theirs)
        self._before, self._expected = (self._seen, theirs), []
        return same

    def _next_step(self) -> list[Event]:
        """Return the state events of the other run's next step; none where that run has ended."""
        events: list[Event] = []
        while True:
            if not self._ahead:
                self._read_ahead()
            if not self._ahead or (events and self._ahead[0].step != events[0].step):
                return events
            event = self._ahead.popleft()
            if event.op == END:
                return events
            events.append(event)

    def _read_ahead(self) -> None:
        """Read the steps that come next, as many as fit into some memory."""
        bytes_left = _AHEAD_BYTES
        for event in self._reader.events((EventKind.STEP,), self._last_step):
            if event.seq <= self._last_read:
                continue
            if bytes_left < 0:
                break
            self._ahead.append(event)
            bytes_left -= 60 * len(event.digests) + 200
        if self._ahead:
            self._last_read = self._ahead[-1].seq
            self._last_step = self._ahead[-1].step
        self._reader.let_go()

    def _match(self, theirs: list[State]) -> bool:
        """Tell whether the tensors that both runs have are equal, whatever names they got by chance."""
        ours, others, *before = (
            {name: value for name, value in _values(states).items() if name[1] not in self._excluded}
            for states in (self._seen, theirs, *self._before)
        )
        return bool(ours and others) and not match(ours, others, (before[0], before[1])).differing


def _values(states: Iterable[State]) -> dict[Name, Value]:
    """Return what a step leaves: the last state of the model, and that of each optimizer."""
    values: dict[Name, Value] = {}
    for infos, digests in states:
        values = {name: value for name, value in values.items() if name[0] == Role.OPTIMIZER}
        for n, info in enumerate(infos):
            values[info.role, info.name] = Value(digests[16 * n : 16 * n + 16], info.dtype, info.shape)
    return values


def stop(recorder: Recorder) -> None:
    """End the run here: record nothing more, and end the process without returning to the script."""
    recorder.stop()
    recorder.steps.end_run()


class StepClock:
    """Notes the time of each step boundary and writes the times when the run ends; it has no other probes.

    A boundary is an `Optimizer.step`; in a script that makes no optimizer, it is the end of a
    `Tensor.backward`. On CUDA it waits for the device at each boundary; otherwise the time of a step would be
    that of queueing it.

    Args:
        settings: `record` is the path of the file of times, `max_steps` the number of steps to run.

    Attributes:
        steps: counts them, and ends the run.
    """

    broken = ""  # nothing is written before the end

    def __init__(self, settings: RecordingSettings) -> None:
        self._settings = settings
        self._imports = PostImport()
        self._patches = Patches()
        self._remove_hook: Callable[[], None] = lambda: None
        self._optimizer_times: list[float] = []
        self._backward_times: list[float] = []
        self._torch: Any = None
        self.steps: Final = Steps()

    def start(self) -> None:
        """Begin to take times once torch is imported."""
        self._imports.on_torch(self._install)
        self._imports.install()

    def finish(
        self,
        ending: Ending,
        control: dict[str, Any] | None = None,
        signals: object = None,  # noqa: ARG002 - as of a recording
        *,
        single: bool = True,  # noqa: ARG002
    ) -> None:
        """Write the times and how the run ended.

        Args:
            ending: how the run ended.
            control: the facts of the control that the run was under.
            signals: not used here.
            single: not used here.
        """
        self._imports.remove()
        self._remove_hook()
        self._patches.restore()
        times = self._optimizer_times or self._backward_times
        facts = dict(control or {})
        if facts:
            facts["cuda"] = self._torch is not None and self._torch.cuda.is_initialized()
        seen = {"times": times, "status": ending.status, "failure": ending.failure, "control": facts}
        with files.open_text_to_write(self._settings.record) as file:
            json.dump(seen, file)

    def _install(self, torch: Any) -> None:
        self._torch = torch
        handle = import_module("torch.optim.optimizer").register_optimizer_step_post_hook(self._stepped)
        self._remove_hook = handle.remove
        backward = torch.Tensor.backward

        @functools.wraps(backward)
        def timed_backward(*args: Any, **kwargs: Any) -> Any:
            result = backward(*args, **kwargs)
            self._note(self._backward_times)
            return result

        self._patches.set(torch.Tensor, "backward", timed_backward)

    def _stepped(self, *_: object) -> None:
        self.steps.close((), b"")
        self._note(self._optimizer_times)

    def _note(self, times: list[float]) -> None:
        if self._torch.cuda.is_initialized():
            self._torch.cuda.synchronize()
        times.append(time.perf_counter())
        limit = self._settings.max_steps
        if limit is None or len(times) < limit:
            return
        if times is self._optimizer_times or (not self._optimizer_times and not self._has_optimizer()):
            self.steps.end_run()

    @staticmethod
    def _has_optimizer() -> bool:
        optimizer = sys.modules["torch.optim"].Optimizer
        return any(isinstance(obj, optimizer) for obj in gc.get_objects())
