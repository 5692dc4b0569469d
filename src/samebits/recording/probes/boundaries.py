"""The event that closes a step: all of the state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.hooks.frames import calling_frame

if TYPE_CHECKING:
    from samebits.recording.events import TensorInfo
    from samebits.recording.probes.rng import RngProbe
    from samebits.recording.probes.state import StateTracker
    from samebits.recording.recorder import Recorder


class StateProbe:
    """Records generator states and a `step` event with the state of the model and of one optimizer.

    Args:
        recorder: where events go.
        state: knows the tensors.
        rng: knows the generators.
    """

    def __init__(self, recorder: Recorder, state: StateTracker, rng: RngProbe) -> None:
        self._recorder = recorder
        self.state = state
        self._rng = rng
        self._joined: dict[tuple[int, int], tuple[int, tuple[TensorInfo, ...]]] = {}

    def close_step(self, op: str, optimizer: Any = None) -> None:
        """Record the state and begin the next step."""
        infos, digests = self.record(op, optimizer)
        self._recorder.steps.close(infos, digests)

    def record(self, op: str, optimizer: Any = None) -> tuple[tuple[TensorInfo, ...], bytes]:
        """Record the state; give what was recorded."""
        recorder = self._recorder
        with recorder.quietly:
            self._rng.record_states()
            model = self.state.model()
            tensors, infos, layout, digests = model.tensors, model.infos, model.layout, model.digest()
            own = None if optimizer is None else self.state.optimizer(optimizer)
            if own is not None and own.infos:
                layout, infos = self._join(model.layout, own.layout, infos, own.infos)
                digests += own.digest()
                tensors = tensors + own.tensors
            owned = "" if optimizer is None else self.state.owned(optimizer, model)
        site = recorder.sites.find(calling_frame())
        recorder.state(op, site, layout, digests, tensors, owned)
        return infos, digests

    def _join(
        self, first: int, second: int, infos: tuple[TensorInfo, ...], more: tuple[TensorInfo, ...]
    ) -> tuple[int, tuple[TensorInfo, ...]]:
        found = self._joined.get((first, second))
        if found is None:
            both = infos + more
            found = self._joined[first, second] = (self._recorder.writer.layout(both), both)
        return found
