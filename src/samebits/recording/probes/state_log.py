"""Fills the state log, and kills the run where that is asked for."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

from samebits.digest import digest_bytes
from samebits.hooks.frames import calling_frame
from samebits.recording.notes import RecordedPart
from samebits.recording.probes.batch_log import BatchLog
from samebits.recording.probes.training_facts import TrainingFacts
from samebits.recording.probes.variables import Variables
from samebits.recording.state_log import StateLog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.recording.events import TensorInfo
    from samebits.recording.probes.rng import RngProbe
    from samebits.recording.probes.state import StateTracker
    from samebits.recording.recorder import Recorder

_SHORT = 8  # bytes of a digest in the log
_ROLES = {"param": "params", "buffer": "buffers", "optimizer": "optimizer"}


class StateLogProbe:
    """Writes what is there before each optimizer step; kills the process after a number of them.

    What is restored is looked at before the first forward pass in training mode since the last step, or else
    before the step: a forward pass draws random numbers and changes buffers.

    Args:
        recorder: tells of batches; its settings say what is wanted.
        state: knows the tensors.
        rng: knows the generators.
    """

    def __init__(self, recorder: Recorder, state: StateTracker, rng: RngProbe) -> None:
        self._recorder, self._state, self._rng = recorder, state, rng
        path = recorder.settings.state_log
        self._log = StateLog(path) if path else None
        self._steps = 0
        self._closed = -1  # step of the recorder after the last optimizer step
        self._n_optimizers = self._n_before = 0  # that made this step, and the one before
        self._seen: dict[str, Any] | None = None  # before the step that comes next
        self._handles: list[Any] = []
        self._variables = Variables()
        self._facts = TrainingFacts(state)
        self._settings: dict[str, str] = {}
        self._batches = BatchLog(recorder, self._log, self.generators) if self._log else None

    def install(self, torch: Any) -> None:
        """Watch optimizers, forward passes and loaders."""
        from torch.nn.modules.module import register_module_forward_pre_hook
        from torch.optim.optimizer import (
            register_optimizer_step_post_hook,
            register_optimizer_step_pre_hook,
        )

        self._handles = [register_optimizer_step_post_hook(self._after)]
        self._handles.append(register_optimizer_step_pre_hook(self._before))
        if self._log is not None:
            self._handles.append(register_module_forward_pre_hook(self._forward))
        if self._batches is not None:
            self._batches.install(torch)

    def remove(self) -> None:
        """Watch nothing, and close the log."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self._batches is not None:
            self._batches.remove()
        if self._log is not None:
            self._log.close()

    def generators(self) -> dict[str, str]:
        """A short digest of the state of each global generator."""
        names, digests = self._rng.states()
        return dict(zip(names, _shortened(digests), strict=True))

    def _forward(self, module: Any, _arguments: Any) -> None:
        if self._seen is not None or not self._recorder.active or not getattr(module, "training", False):
            return
        if self._recorder.seen.compiler or threading.current_thread() is not threading.main_thread():
            return  # a compiler would trace this hook too
        with self._recorder.recording(RecordedPart.STATE_LOG):
            if any(parameter.requires_grad for parameter in module.parameters()):
                self._seen = self._look()

    def _before(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if not self._recorder.active:
            return
        if self._recorder.step < self._closed:  # one more optimizer belongs to the last step
            self._steps -= 1
            self._n_optimizers += 1
            return
        self._n_before, self._n_optimizers = self._n_optimizers, 1
        if self._log is None:
            return
        with self._recorder.recording(RecordedPart.STATE_LOG):
            seen = self._look() if self._seen is None else self._seen
            settings = self._facts.settings(self._steps)
            changes = {n: text for n, text in settings.items() if self._settings.get(n) != text}
            gone = dict.fromkeys(self._settings.keys() - settings.keys())
            self._settings = settings
            self._log.write("step", step=self._steps, **seen, settings={**changes, **gone})

    def _after(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if not self._recorder.active:
            return
        self._steps += 1
        self._closed = self._recorder.step
        self._seen = None
        if self._batches is not None:
            self._batches.step = self._steps
        due, whole = self._recorder.settings.kill_after, self._n_optimizers >= self._n_before
        if due is not None and (self._steps > due or (self._steps == due and whole)):
            self._recorder.writer.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    def _look(self) -> dict[str, Any]:
        """What is restored by a checkpoint, or should be."""
        with self._recorder.quietly:
            model = self._state.model()
            infos, digests = list(model.infos), model.digest()
            for optimizer in self._state.optimizers():
                part = self._state.optimizer(optimizer)
                infos += part.infos
                digests += part.digest()
            found: dict[str, Any] = _by_role(infos, digests)
            if self._steps == 0:
                short = _shortened(digests)
                found["tensors"] = [[i.role, i.name, d] for i, d in zip(infos, short, strict=True)]
            found["generators"] = self.generators()
            found["variables"] = self._variables.changes(calling_frame(2))
        return found


def _by_role(infos: Sequence[TensorInfo], digests: bytes) -> dict[str, str]:
    """One digest for each role, over the digests of its tensors whatever their order and names."""
    lists: dict[str, list[bytes]] = {role: [] for role in _ROLES}
    for position, info in enumerate(infos):
        lists[info.role].append(digests[16 * position : 16 * position + 16])
    return {
        _ROLES[role]: digest_bytes(b"".join(sorted(found)))[:_SHORT].hex() if found else ""
        for role, found in lists.items()
    }


def _shortened(digests: bytes) -> list[str]:
    return [digests[start : start + _SHORT].hex() for start in range(0, len(digests), 16)]
