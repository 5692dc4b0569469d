"""The log of a run's state before each optimizer step, with what a step-level record does not hold.

A record compares two runs that both begin at the beginning. A run that continues from a checkpoint begins
elsewhere, and what it did not restore shows before its first step. This log holds that. It is a file beside
the record, one JSON object per line, written line by line, so that it survives a kill.

Lines, by `kind`:

- `pass`: an iterator of a `DataLoader` was made; `generators` are the states before it, with the loader's own
  if it has one, `workers` their number.
- `batch`: `seq` of its event in the record, `site`, `pass` and `number` in it, `indices` of its samples
  where they are known.
- `step`: the state before optimizer step number `step`. `params`, `buffers` and `optimizer` are one digest
  each over their tensors, whatever their names; `tensors` has each one (in the first step of a process only).
  `generators`; `settings` (hyperparameters, schedules, scalers) and `variables`: what has changed since the
  last step, null for what is gone.
"""

from __future__ import annotations

import json
import os
import threading
import weakref
from itertools import count
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import calling_frame
from samebits._runtime.processes import KILL
from samebits.digest import digest_bytes
from samebits.recording._recorder import is_tensor
from samebits.recording.probes.batches import BatchLog
from samebits.recording.probes.modules import instances, numbered
from samebits.recording.probes.variables import Variables
from samebits.records.kinds import Role
from samebits.records.log import AppendedFile, emptied
from samebits.records.notes import RecordedPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.recording._recorder import Recorder
    from samebits.recording.probes.rng import RngProbe
    from samebits.recording.probes.state import StateTracker
    from samebits.records.events import TensorInfo


class StateLog:
    """Writes the log.

    Args:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._file: AppendedFile | None = emptied(path)

    def write(self, kind: str, **fields: Any) -> None:
        """Append a line."""
        line = json.dumps({"kind": kind, **fields}, separators=(",", ":"))
        with self._lock:
            if self._file is not None:
                self._file.append(f"{line}\n".encode())

    def close(self) -> None:
        """Write no more."""
        with self._lock:
            self._file = None


_PLAIN = (int, float, bool, str, type(None))
_MOST_ITEMS = 16
_NO_SETTINGS = ("params", "param_names")


class TrainingFacts:
    """Reads hyperparameters, schedules and scalers as text.

    Args:
        state: knows the optimizers.
    """

    def __init__(self, state: StateTracker) -> None:
        self._state = state
        self._labelled: dict[int, tuple[str, weakref.ref[Any]]] = {}

    def settings(self, step: int) -> dict[str, str]:
        """Return `SGD group 0 lr`, `LambdaLR last_epoch`, `GradScaler scale` and so on, with their values.

        Args:
            step: number of the step that comes next. Objects are looked for before steps 0, 1, 2, 4, 8 and so
                on, as that goes through all objects of the process.
        """
        if not step & (step - 1):
            self._search()
        settings: dict[str, str] = {}
        optimizers = self._state.optimizers()
        names = numbered(type(optimizer).__name__ for optimizer in optimizers)
        for name, optimizer in zip(names, optimizers, strict=True):
            for number, group in enumerate(optimizer.param_groups):
                for key, value in group.items():
                    text = None if key in _NO_SETTINGS else _text(value)
                    if text is not None:
                        settings[f"{name} group {number} {key}"] = text
        living = [(name, reference()) for name, reference in self._labelled.values()]
        for name, holder in living:
            for key, value in list(vars(holder).items()) if holder is not None else []:
                text = _text(value)
                if text is not None:
                    settings[f"{name} {key.lstrip('_')}"] = text
        return settings

    def _search(self) -> None:
        import torch
        from torch.optim.lr_scheduler import LRScheduler

        self._labelled = {key: known for key, known in self._labelled.items() if known[1]() is not None}
        taken = {label for label, _ in self._labelled.values()}
        for holder in [*self._in_order(instances(LRScheduler)), *instances(torch.amp.GradScaler)]:
            if id(holder) not in self._labelled:
                name = type(holder).__name__
                labels = (name if number == 1 else f"{name}#{number}" for number in count(1))
                label = next(label for label in labels if label not in taken)
                taken.add(label)
                self._labelled[id(holder)] = (label, weakref.ref(holder))

    def _in_order(self, schedules: list[Any]) -> list[Any]:
        """Sort schedules as their optimizers: the garbage collector lists them in an order that changes."""
        positions = {id(optimizer): position for position, optimizer in enumerate(self._state.optimizers())}
        return sorted(
            schedules, key=lambda s: positions.get(id(getattr(s, "optimizer", None)), len(positions))
        )


def _text(value: Any) -> str | None:
    """Return a number, text or short list of them as text; None for anything else."""
    if type(value) in _PLAIN:
        return repr(value)[:80]
    if is_tensor(value) and value.numel() == 1 and value.device.type == "cpu":
        return repr(value.item())
    if type(value) in (list, tuple) and len(value) <= _MOST_ITEMS:
        parts = [_text(item) for item in value]
        return None if None in parts else f"[{', '.join(str(part) for part in parts)}]"
    return None


_SHORT = 8  # bytes of a digest in the log
_ROLES = {Role.PARAM: "params", Role.BUFFER: "buffers", Role.OPTIMIZER: "optimizer"}


class StateLogProbe:
    """Writes the state before each optimizer step; kills the process after a number of steps.

    Restored state is read before the first forward pass in training mode since the last step, or else before
    the step: a forward pass draws random numbers and changes buffers.

    Args:
        recorder: tells of batches; its settings say what to write.
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
        """Return a short digest of the state of each global generator."""
        names, digests = self._rng.states()
        return dict(zip(names, _shortened(digests), strict=True))

    def _forward(self, module: Any, _arguments: Any) -> None:
        if self._seen is not None or not self._recorder.counts or not getattr(module, "training", False):
            return
        if self._recorder.seen.compiler or threading.current_thread() is not threading.main_thread():
            return  # a compiler would trace this hook too
        with self._recorder.recording(RecordedPart.STATE_LOG):
            if any(parameter.requires_grad for parameter in module.parameters()):
                self._seen = self._read_state()

    def _before(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if not self._recorder.counts:
            return
        if self._recorder.step < self._closed:  # one more optimizer belongs to the last step
            self._steps -= 1
            self._n_optimizers += 1
            return
        self._n_before, self._n_optimizers = self._n_optimizers, 1
        if self._log is None:
            return
        with self._recorder.recording(RecordedPart.STATE_LOG):
            seen = self._read_state() if self._seen is None else self._seen
            settings = self._facts.settings(self._steps)
            changes = {n: text for n, text in settings.items() if self._settings.get(n) != text}
            gone = dict.fromkeys(self._settings.keys() - settings.keys())
            self._settings = settings
            self._log.write("step", step=self._steps, **seen, settings={**changes, **gone})

    def _after(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if not self._recorder.counts:
            return
        self._steps += 1
        self._closed = self._recorder.step
        self._seen = None
        if self._batches is not None:
            self._batches.step = self._steps
        due, whole = self._recorder.settings.kill_after, self._n_optimizers >= self._n_before
        if due is not None and (self._steps > due or (self._steps == due and whole)):
            self._recorder.writer.flush()
            os.kill(os.getpid(), KILL)

    def _read_state(self) -> dict[str, Any]:
        """Return the state that a checkpoint restores, or should restore."""
        with self._recorder.quietly:
            model = self._state.model()
            infos, digests = list(model.infos), model.digest()
            for optimizer in self._state.optimizers():
                part = self._state.optimizer(optimizer)
                infos += part.infos
                digests += part.digest()
            facts: dict[str, Any] = _by_role(infos, digests)
            if self._steps == 0:
                short = _shortened(digests)
                facts["tensors"] = [[i.role, i.name, d] for i, d in zip(infos, short, strict=True)]
            facts["generators"] = self.generators()
            facts["variables"] = self._variables.changes(calling_frame(2))
        return facts


def _by_role(infos: Sequence[TensorInfo], digests: bytes) -> dict[str, str]:
    """Return one digest for each role, over the digests of its tensors whatever their order and names."""
    lists: dict[Role, list[bytes]] = {role: [] for role in _ROLES}
    for position, info in enumerate(infos):
        lists[info.role].append(digests[16 * position : 16 * position + 16])
    return {
        _ROLES[role]: digest_bytes(b"".join(sorted(role_digests)))[:_SHORT].hex() if role_digests else ""
        for role, role_digests in lists.items()
    }


def _shortened(digests: bytes) -> list[str]:
    return [digests[start : start + _SHORT].hex() for start in range(0, len(digests), 16)]
