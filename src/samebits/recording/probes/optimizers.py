"""The probes that record all of the state at the end of each step."""

from __future__ import annotations

import functools
import threading
import weakref
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line
from samebits._runtime.frames import calling_frame
from samebits._runtime.patching import Patches
from samebits.recording._recorder import recordable
from samebits.recording.probes.backward import versions_by_name
from samebits.records.kinds import EventKind
from samebits.records.notes import RecordedPart

if TYPE_CHECKING:
    from types import FrameType

    from samebits.digest.pending import Digests
    from samebits.recording._recorder import Recorder
    from samebits.recording.probes.backward import BackwardProbe
    from samebits.recording.probes.rng import RngProbe
    from samebits.recording.probes.state import StateTracker
    from samebits.recording.probes.streams import StreamProbe
    from samebits.records.events import TensorInfo


class StateProbe:
    """Records generator states and a `step` event with the state of the model and of one optimizer.

    Args:
        recorder: where events go.
        state: knows the tensors.
        rng: knows the generators.
        streams: knows the streams of GPUs.
    """

    def __init__(self, recorder: Recorder, state: StateTracker, rng: RngProbe, streams: StreamProbe) -> None:
        self._recorder = recorder
        self.state = state
        self._rng = rng
        self._streams = streams
        self._joined: dict[tuple[int, int], tuple[int, tuple[TensorInfo, ...]]] = {}

    def close_step(self, op: str, optimizer: Any = None) -> None:
        """Record the state and begin the next step."""
        infos, digests = self.record(op, optimizer)
        self._recorder.steps.close(infos, digests)

    def record(self, op: str, optimizer: Any = None) -> tuple[tuple[TensorInfo, ...], Digests]:
        """Record the state; return its descriptions and digests."""
        recorder = self._recorder
        with recorder.quietly:
            self._rng.record_states()
            self._streams.settle()
            model = self.state.model()
            tensors, infos, layout, digests = model.tensors, model.infos, model.layout, model.begin()
            own = None if optimizer is None else self.state.optimizer(optimizer)
            if own is not None and own.infos:
                layout, infos = self._join(model.layout, own.layout, infos, own.infos)
                digests += own.begin()
                tensors = tensors + own.tensors
            self._streams.settle()  # what the script queues on another stream from now on is of the next step
            owned = "" if optimizer is None else self.state.owned(optimizer, model)
        site = recorder.sites.find(calling_frame())
        recorder.state(op, site, layout, digests, tensors, owned)
        return infos, digests

    def _join(
        self, first: int, second: int, infos: tuple[TensorInfo, ...], more: tuple[TensorInfo, ...]
    ) -> tuple[int, tuple[TensorInfo, ...]]:
        joined = self._joined.get((first, second))
        if joined is None:
            both = infos + more
            joined = self._joined[first, second] = (self._recorder.writer.layout(both), both)
        return joined


class OptimizerProbe:
    """Records a `step` event after every step of any optimizer.

    Args:
        recorder: where events go.
        state: knows the tensors.
        backward: knows which gradients were recorded already.
        boundaries: records the state.
    """

    def __init__(
        self, recorder: Recorder, state: StateTracker, backward: BackwardProbe, boundaries: StateProbe
    ) -> None:
        self._recorder = recorder
        self._state = state
        self._backward = backward
        self._boundaries = boundaries
        self._handles: list[Any] = []
        self._running: list[tuple[int, int]] = []  # thread and frame of each step in progress
        self._group = _StepGroup()
        self._patches = Patches()

    def install(self, torch: Any) -> None:
        """Watch optimizers, also those that exist already."""
        from torch.optim.optimizer import (
            register_optimizer_step_post_hook,
            register_optimizer_step_pre_hook,
        )

        self._handles = [
            register_optimizer_step_pre_hook(self._before),
            register_optimizer_step_post_hook(self._after),
        ]
        optimizer_class, note, recorder = torch.optim.Optimizer, self._note, self._recorder
        init = optimizer_class.__init__

        @functools.wraps(init)
        def noted_init(optimizer: Any, /, *args: Any, **kwargs: Any) -> None:
            try:
                init(optimizer, *args, **kwargs)
            except BaseException as error:
                leave_no_line(error)
                raise
            with recorder.recording(RecordedPart.OPTIMIZER):
                note(optimizer)

        self._patches.set(optimizer_class, "__init__", noted_init)
        self._state.find_optimizers(optimizer_class)
        scaler = getattr(torch.amp, "GradScaler", None)
        if scaler is not None:
            self._watch_scaler(scaler)

    def remove(self) -> None:
        """Watch nothing."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._patches.restore()

    def _watch_scaler(self, scaler_class: type[Any]) -> None:
        """Watch unscaling, which writes to gradients without raising their version (seen in torch 2.13.0)."""
        unscale, backward = scaler_class.unscale_, self._backward

        @functools.wraps(unscale)
        def watched_unscale(scaler: Any, /, *args: Any, **kwargs: Any) -> None:
            unscale(scaler, *args, **kwargs)
            backward.forget()

        self._patches.set(scaler_class, "unscale_", watched_unscale)

    def _note(self, optimizer: Any) -> None:
        if self._recorder.active:
            self._recorder.seen.optimizer = True
            self._state.add_optimizer(optimizer)

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Record gradients that were changed since the backward pass (clipped, unscaled)."""
        if self._recorder.counts:
            with self._recorder.recording(RecordedPart.GRADIENTS):
                # The first of the arguments is the optimizer; a closure makes a backward pass of its own.
                closure = any(map(callable, (*args[1:], *kwargs.values())))
                self._begin(optimizer, calling_frame(), new_pass=closure or self._backward.pending)

    def _begin(self, optimizer: Any, frame: FrameType, *, new_pass: bool) -> None:
        recorder = self._recorder
        self._note(optimizer)
        self._enter(frame)
        is_late = self._group.takes(optimizer, new_pass=new_pass) and recorder.step > 0
        if is_late:
            recorder.steps.reopen()
        sites = recorder.sites
        sites.optimizer_site = sites.find(frame) if len(self._running) == 1 else None
        seen = self._backward.seen
        with self._backward.threads.readable() as may_read:
            # What the others hold may be clipped by now, or not: that depends on the order.
            gradients = self._state.gradients(may_read, optimizer if is_late else None)
        now = versions_by_name(gradients)
        changed = [each for each in gradients if seen.get(each[0]) != now[each[0]]] if now != seen else []
        if changed and recordable(tensors := [gradient for _, gradient in changed]):
            names = tuple([name for name, _ in changed])
            recorder.value(EventKind.GRAD, f"{type(optimizer).__name__}.step", frame, tensors, names)
        self._backward.forget()

    def _enter(self, frame: FrameType) -> None:
        """Note a step in progress; forget those that ended in an error, for which no hook is called."""
        if self._running:
            thread = threading.get_ident()
            outer = _frames_above(frame)
            alive = {each.ident for each in threading.enumerate()} - {thread}
            self._running = [
                (other, step)
                for other, step in self._running
                if (step in outer if other == thread else other in alive)
            ]
        self._running.append((threading.get_ident(), id(frame)))

    def _after(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        ended = id(calling_frame())
        self._running = [(thread, step) for thread, step in self._running if step != ended]
        self._recorder.sites.optimizer_site = None
        if not self._recorder.counts:
            return
        with self._recorder.recording(RecordedPart.STEP):
            self._note(optimizer)
            self._boundaries.close_step(f"{type(optimizer).__name__}.step", optimizer)
            self._backward.pending = False
            self._group.add(optimizer)


class _StepGroup:
    """The optimizers that step after the same backward pass: together they make one step of the training."""

    def __init__(self) -> None:
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._thread: int | None = None

    def takes(self, optimizer: Any, *, new_pass: bool) -> bool:
        """Tell whether an optimizer that is about to step belongs to the step that was closed last.

        Args:
            optimizer: that is about to step.
            new_pass: whether there was a backward pass since then.
        """
        thread = threading.get_ident()
        if not new_pass and self._thread in (thread, None) and optimizer not in self._optimizers:
            return True
        self._optimizers.clear()
        return False

    def add(self, optimizer: Any) -> None:
        """Note an optimizer that has stepped."""
        self._optimizers.add(optimizer)
        self._thread = threading.get_ident()


def _frames_above(frame: FrameType) -> set[int]:
    """Return the identities of the frames that called `frame`."""
    callers = set()
    caller = frame.f_back
    while caller is not None:
        callers.add(id(caller))
        caller = caller.f_back
    return callers
