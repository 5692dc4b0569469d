"""The runs of one verification, one after the other."""

from __future__ import annotations

import copy
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from samebits.errors import SamebitsError
from samebits.verification.naming import SUFFIX
from samebits.verification.perturbation import NONE, stress
from samebits.verification.place import check_place
from samebits.verification.runs import Script, run_script
from samebits.verification.stdin import StandardInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from samebits.recording.settings import RecordingSettings
    from samebits.verification.perturbation import Perturbation
    from samebits.verification.request import VerifyRequest
    from samebits.verification.results import ScriptRun


_Number = TypeVar("_Number", int, float)
LEAST_BUDGET_S = 180.0
BUDGET_RUNS = 20  # so many times the first run, where that is more


class BudgetSpent(Exception):  # noqa: N818 - it is no error
    """The time for explaining a difference is over."""


class RunScript(Protocol):
    """**Protocol:** what `run_script` does; tests give another."""

    def __call__(
        self, script: Script, settings: RecordingSettings, *, purpose: str, perturbation: Perturbation
    ) -> ScriptRun:
        """Run a script once, recorded."""
        ...


@dataclass(frozen=True)
class Plan:
    """One run to be made.

    Args:
        name: of its record.
        words: what to tell the user.
        settings: how it is recorded; the series fills in the record's path.
        purpose: see `ScriptRun`.
        role: which of the compared runs it repeats, from 0: `--stress` perturbs it as that one.
        limit_s: seconds after which it is ended; None for no limit of its own.
        pins: names of the pins that it has beside the request's.
    """

    name: str
    words: str
    settings: RecordingSettings
    purpose: str = "compare"
    role: int = 0
    limit_s: float | None = None
    pins: tuple[str, ...] = ()


class Series:
    """Makes runs and remembers them.

    Args:
        request: what is verified.
        announce: told what is about to run.
        run_script: runs the script.

    Attributes:
        deadline: moment of `time.monotonic` at which no more runs are made; None for never.
    """

    def __init__(
        self,
        request: VerifyRequest,
        announce: Callable[[str], None] | None = None,
        run_script: RunScript = run_script,
    ) -> None:
        self.request = request
        self.runs: list[ScriptRun] = []
        self.deadline: float | None = None
        self._announce = announce or (lambda _: None)
        self._run_script = run_script
        self._script = Script(request.target, request.output, request.environment, StandardInput())
        self._overlay: tuple[tuple[str, str], ...] = ()
        self._prefix = ""

    @property
    def budget_s(self) -> float:
        """Seconds for explaining a difference, and as many again for a patch."""
        if self.request.budget is not None:
            return self.request.budget
        return max(LEAST_BUDGET_S, BUDGET_RUNS * self.first_seconds)

    @property
    def first_seconds(self) -> float:
        """What the first run took; 0 before there is one."""
        return self.runs[0].seconds if self.runs else 0.0

    @contextmanager
    def limited(self) -> Iterator[None]:
        """No run is made, and none goes on, when the budget is spent."""
        self.deadline = time.monotonic() + self.budget_s
        try:
            yield
        finally:
            self.deadline = None

    def overlaid(self, overlay: tuple[tuple[str, str], ...], prefix: str) -> Series:
        """The same series, with other text run in the place of some files.

        Args:
            overlay: see `RecordingSettings`.
            prefix: of the names of its records, which are those of a patch under trial.
        """
        other = copy.copy(self)
        other._overlay, other._prefix = overlay, prefix
        return other

    def check_folder(self) -> None:
        """Refuse a folder that holds the records of another verification, or cannot hold any.

        Raises:
            SamebitsError: `record-exists` or `record-unwritable`.
        """
        first = self.request.folder / f"run-1{SUFFIX}"
        if first.exists():
            message = f"{first} exists and is not overwritten; give another --keep, or remove it"
            raise SamebitsError(message, slug="record-exists")
        check_place(first)

    def run(self, plan: Plan) -> ScriptRun:
        """Run the script once.

        Raises:
            BudgetSpent: the deadline has passed, or passed while the script ran.
        """
        left = self._seconds_left()
        self._announce(plan.words)
        settings = replace(
            plan.settings,
            record=str(self.request.folder / f"{self._prefix}{plan.name}{SUFFIX}"),
            overlay=self._overlay,
            max_steps=_least(plan.settings.max_steps, self.request.steps),
            progress=self.request.progress,
            control=self.request.control,
            pins=tuple(dict.fromkeys((*self.request.pins, *plan.pins))),
        )
        perturbation = self._pinned(self._perturbation(plan.role), settings.pins)
        settings = replace(settings, scheduling_noise=perturbation.scheduling_noise)
        if settings.pins and perturbation.fixed_layout:
            # Addresses follow from what is allocated, so that both runs have to do the same: neither is
            # compared with the other while it runs.
            settings = replace(settings, reference="")
        output = self._script.output if plan.purpose == "compare" else "nothing"
        script = replace(self._script, output=output, limit_s=_least(left, plan.limit_s))
        purpose = "fix" if self._overlay else plan.purpose
        run = self._run_script(script, settings, purpose=purpose, perturbation=perturbation)
        self.runs.append(run)
        if run.timed_out:
            self._seconds_left()
        return run

    def _seconds_left(self) -> float | None:
        if self.deadline is None:
            return None
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise BudgetSpent
        return left

    def _perturbation(self, role: int) -> Perturbation:
        if not self.request.stress:
            return NONE
        return stress(role, {**os.environ, **self.request.environment})  # what is pinned is not perturbed

    def _pinned(self, perturbation: Perturbation, pins: tuple[str, ...]) -> Perturbation:
        """What the run gets besides, with that of its pins: what is pinned is not perturbed."""
        if not pins:
            return perturbation
        from samebits.determinism.pins import combine

        request = self.request
        plan = combine(pins, request.control, {**os.environ, **request.environment})
        variables = {**perturbation.environment, **plan.environment}
        fixed = perturbation.fixed_layout or plan.fixed_layout
        return replace(perturbation, environment=variables, fixed_layout=fixed)

    def pair(self, name: str, words: str, settings: RecordingSettings, *, purpose: str, role: int) -> Pair:
        """Run the script twice as run 0 and run `role`; the second stops where its state differs."""
        first = self.run(Plan(f"{name}a", f"{words}, 1 of 2", settings, purpose, 0))
        following = replace(settings, reference=first.record)
        second = self.run(Plan(f"{name}b", f"{words}, 2 of 2", following, purpose, role))
        return Pair(first, second)


@dataclass(frozen=True)
class Pair:
    """Two runs to be compared."""

    first: ScriptRun
    second: ScriptRun


def _least(*limits: _Number | None) -> _Number | None:
    return min((limit for limit in limits if limit is not None), default=None)
