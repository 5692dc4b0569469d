"""A recorded run under control: active before the script begins, checked at each step boundary."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from samebits.determinism.activation import Activation
from samebits.determinism.throwing import explain
from samebits.errors import SamebitsError
from samebits.recording.runner import StopRun

if TYPE_CHECKING:
    from samebits.determinism.control import Control
    from samebits.recording.clock import StepClock
    from samebits.recording.recorder import Recorder
    from samebits.recording.runner import RunResult


class ControlledRun:
    """Holds the activation of a run that is recorded.

    Args:
        control: what is asked for.
        recorder: its step boundaries are where drift is looked for.
    """

    def __init__(self, control: Control, recorder: Recorder | StepClock) -> None:
        self._refusal: SamebitsError | None = None
        self._control = control
        self._recorder = recorder
        self._activation = Activation(control, fresh_process=True, tell=_say)

    def start(self) -> None:
        """Take control, and look for drift first at every boundary."""
        self._activation.start()
        self._recorder.on_boundary.insert(0, self._check)

    def stop(self) -> None:
        """Give control back."""
        self._activation.stop()

    def facts(self) -> dict[str, Any]:
        """What the record keeps: what was asked for, what came of it, what changed later."""
        return {**self._control.to_dict(), **self._activation.facts()}

    def conclude(self, result: RunResult) -> SamebitsError | None:
        """Say what to do about an op that refused to run under deterministic algorithms.

        Returns:
            why drift ended the run, if it did.
        """
        error = getattr(sys, "last_value", None) if result.failure else None
        text = None if error is None else explain(error)
        if text:
            _say(text)
        return self._refusal

    def _check(self, *_: object) -> None:
        try:
            self._activation.check(self._recorder.step)
        except SamebitsError as error:
            self._refusal = error
            raise StopRun from None


def _say(text: str) -> None:
    print(f"samebits: {text}", file=sys.stderr, flush=True)
