"""A recorded run under control: active before the script begins, checked at each step boundary."""

from __future__ import annotations

import dataclasses
import os
import sys
from typing import TYPE_CHECKING, Any

from samebits.determinism.activation import Activation
from samebits.determinism.deterministic_ops import explain
from samebits.determinism.processes import ThreadWatch
from samebits.errors import SamebitsError
from samebits.switches.startup import FIXED, LAYOUT

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.recording._steps import Steps
    from samebits.recording.runner import RunResult
    from samebits.rng.script_seeds import ScriptSeed
    from samebits.switches.switch import Control


class ControlledRun:
    """The control of a recorded run.

    Args:
        control: what is asked for.
        steps: their boundaries are where drift is looked for.
        say: shows the user a line.
    """

    def __init__(self, control: Control, steps: Steps, say: Callable[[str], None]) -> None:
        self._refusal: SamebitsError | None = None
        self._control = control
        self._say = say
        self._steps = steps
        self._drifts: list[str] = []
        self._process = os.getpid()
        self._activation = Activation(control, fresh_process=True, warn=lambda text, _site: say(text))
        self._threads = ThreadWatch()

    def start(self) -> None:
        """Take control, and look for drift first at every boundary."""
        self._activation.start()
        self._steps.listen(self._check, first=True)
        layout = [row for row in self._activation.report.switches if row.name == LAYOUT.name]
        if layout and layout[0].now == FIXED:
            self._threads.install()

    def stop(self) -> None:
        """Give control back."""
        self._threads.remove()
        self._activation.stop()

    def facts(self) -> dict[str, Any]:
        """Return what the record holds of the control: the request, its results, and later drift."""
        report, thread = self._activation.report, self._threads.first
        return {
            **self._control.to_dict(),
            "run_seed": report.seed,
            "results": {row.name: row._asdict() for row in report.switches},
            "warnings": list(report.warnings),
            "drifts": self._drifts,
            "script_seeds": [seed.to_dict() for seed in self._activation.script_seeds],
            "threads_beside": None if thread is None else dataclasses.asdict(thread),
        }

    def conclude(self, result: RunResult) -> SamebitsError | None:
        """Tell of seeds and threads that control does not reach, and of an op that refused to run.

        Returns:
            the error of the drift that ended the run; None if none did.
        """
        self._tell_of_seeds()
        self._tell_of_threads()
        error = getattr(sys, "last_value", None) if result.failure else None
        text = None if error is None else explain(error)
        if text:
            self._say(text)
        return self._refusal

    def _tell_of_seeds(self) -> None:
        """Say that the script sets a seed other than the one asked for, which is easily overlooked."""
        control = self._control
        if control.seed is None or control.reseed or control.sources is not None:
            return
        if os.getpid() != self._process:
            return  # a forked child that ends like the script: the script tells
        seeds = self._activation.script_seeds
        for who, calls in (
            ("the script seeds itself", [seed for seed in seeds if seed.by is None]),
            ("a library seeds for the script", [seed for seed in seeds if seed.by is not None]),
        ):
            if calls:
                self._say(
                    f"{who}: {_seeding(calls)}. What a generator draws after such a call does not depend on "
                    f"--seed {control.seed}; with --reseed it does"
                )

    def _tell_of_threads(self) -> None:
        """Say that other threads run, whose allocations fixed addresses cannot hold."""
        site = self._threads.first
        if site is not None and os.getpid() == self._process:
            self._say(
                f"threads run beside the script, the first started at {site.file}:{site.line}: what is "
                "allocated from then on may have other addresses in each run, so that the order of sets of "
                "objects, or of sorting by id, is not held"
            )

    def _check(self, *_: object) -> None:
        try:
            self._drifts += [drift.text() for drift in self._activation.check(self._steps.count)]
        except SamebitsError as error:
            self._refusal = error
            self._steps.end_run()


def _seeding(calls: list[ScriptSeed]) -> str:
    """Describe the first of these calls, and say how many more there are."""
    first, others = calls[0], len(calls) - 1
    lines = [f"{site.file}:{site.line}" for site in (first.by, first.site) if site is not None]
    more = f" and {others} more such call{'s' if others > 1 else ''}" if others else ""
    return f"{first.function}({first.given}) at {', called from '.join(lines)}{more}"
