"""A run that is timed step by step instead of recorded."""

from __future__ import annotations

import functools
import gc
import json
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from samebits._runtime.imports import PostImport
from samebits._runtime.patching import Patches
from samebits._text import files
from samebits.recording._steps import Steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.recording.session import Ending
    from samebits.recording.settings import RecordingSettings


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

    broken = ""  # nothing is written before the end

    def finish(self, ending: Ending, control: dict[str, Any] | None = None, *, single: bool = True) -> None:  # noqa: ARG002 - as of a recording
        """Write what was seen.

        Args:
            ending: how the run ended.
            control: the facts of the control that the run was under.
            single: not used here.
        """
        self._imports.remove()
        self._remove_hook()
        self._patches.restore()
        times = self._optimizer_times or self._backward_times
        facts = dict(control or {})
        if facts:
            facts["cuda"] = self._torch is not None and self._torch.cuda.is_available()
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
        return any(isinstance(thing, optimizer) for thing in gc.get_objects())
