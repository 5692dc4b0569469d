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
    from samebits.hooks.frames import Site
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
        self._drifts: list[str] = []
        self._activation = Activation(control, fresh_process=True, warn=self._warn)

    def start(self) -> None:
        """Take control, and look for drift first at every boundary."""
        self._activation.start()
        self._recorder.on_boundary.insert(0, self._check)

    def stop(self) -> None:
        """Give control back."""
        self._activation.stop()

    def facts(self) -> dict[str, Any]:
        """What the record keeps: what was asked for, what came of it, what changed later."""
        report = self._activation.report
        rows = {row.name: row._asdict() for row in report.switches}
        asked = {**self._control.to_dict(), "run_seed": report.seed}
        seeds = [seed.to_dict() for seed in self._activation.script_seeds]
        more = {"warnings": list(report.warnings), "drifts": self._drifts, "script_seeds": seeds}
        return {**asked, "results": rows, **more}

    def conclude(self, result: RunResult) -> SamebitsError | None:
        """Say what to do about an op that refused to run under deterministic algorithms.

        Returns:
            why drift ended the run, if it did.
        """
        self._tell_of_seeds()
        error = getattr(sys, "last_value", None) if result.failure else None
        text = None if error is None else explain(error)
        if text:
            _say(text)
        return self._refusal

    def _tell_of_seeds(self) -> None:
        """A seed that the script sets is not the one that was asked for, which is easily overlooked."""
        seeds = [seed for seed in self._activation.script_seeds if seed.site is not None]
        control = self._control
        if not seeds or control.seed is None or control.reseed or control.sources is not None:
            return
        first, more = seeds[0], f" and {len(seeds) - 1} more such calls" if len(seeds) > 1 else ""
        place = "" if first.site is None else f"{first.site.file}:{first.site.line}"
        _say(
            f"the script seeds itself: {first.function}({first.given}) at {place}{more}. What is drawn after "
            f"that does not depend on --seed {self._control.seed}; with --reseed it does"
        )

    @staticmethod
    def _warn(message: str, _: Site | None) -> None:
        _say(message)

    def _check(self, *_: object) -> None:
        try:
            self._drifts += [drift.text() for drift in self._activation.check(self._recorder.step)]
        except SamebitsError as error:
            self._refusal = error
            raise StopRun from None


def _say(text: str) -> None:
    print(f"samebits: {text}", file=sys.stderr, flush=True)
