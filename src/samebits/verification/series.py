"""The runs of one verification."""

from __future__ import annotations

import copy
import os
import time
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from samebits._runtime.address_layout import can_fix_layout
from samebits.errors import SamebitsError
from samebits.recording.naming import SUFFIX
from samebits.recording.runner import Target
from samebits.recording.settings import EarlierRun
from samebits.switches.table import holds_layout
from samebits.verification import preconditions
from samebits.verification._child_records import run_of_child
from samebits.verification._concurrency import Concurrency
from samebits.verification.isolation import MOST_COPIED_BYTES, StandardInput, WorkingFolder, in_copy
from samebits.verification.plans import BudgetSpent, Pair, Phase, Plan
from samebits.verification.preconditions import check_writable
from samebits.verification.results import Purpose
from samebits.verification.runs import NONE, Job, Script, run_jobs, stress
from samebits.verification.user_files import read_notes, refuse_other_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from samebits.comparison.results import Source
    from samebits.recording.settings import RecordingSettings
    from samebits.verification._request import VerifyRequest
    from samebits.verification.results import ScriptRun
    from samebits.verification.runs import Perturbation
    from samebits.verification.user_files import EarlierFile


RunJobs: TypeAlias = "Callable[[Sequence[Job]], tuple[ScriptRun, ...]]"
_Number = TypeVar("_Number", int, float)
LEAST_BUDGET_S = 180.0
_LATEST = 4  # the length of the next run is estimated from this many
BUDGET_RUNS = 20  # times the first run, if that is more


class Series:
    """Makes runs and remembers them.

    Args:
        request: what is verified.
        announce: called with what is about to run.
        run_jobs: runs the script.

    Attributes:
        count_reads: whether the script is known never to train: then each value that it reads is a step.
        child: the child process of the script that is examined; empty for the script itself. Runs have its
            record then.
        deadline: moment of `time.monotonic` at which no more runs are made; None for never.
    """

    def __init__(
        self,
        request: VerifyRequest,
        announce: Callable[[Phase], None] | None = None,
        run_jobs: RunJobs = run_jobs,
    ) -> None:
        self.request = request
        self.runs: list[ScriptRun] = []
        self.deadline: float | None = None
        self.count_reads = False
        self._announce = announce or (lambda _: None)
        self._run_jobs = run_jobs
        self._concurrency = Concurrency(request)
        self._stdin = StandardInput()
        self._script = Script(request.target, request.output, request.environment, self._stdin)
        self._overlay: tuple[tuple[str, str], ...] = ()
        self._prefix = ""
        self._copy: WorkingFolder | None = None
        if request.fresh:
            folder = request.folder / "folder"
            self._copy = WorkingFolder(Path.cwd(), folder, request.share, MOST_COPIED_BYTES)
        self._times: list[tuple[int, int]] = []  # of the compared runs: when each began and ended
        self.child = ""
        self._roots: dict[str, str] = {}
        self._prepared: dict[str, ScriptRun] = {}
        self._notes: list[str] = []  # for each but the first: where it notes files of the run before

    @property
    def budget_s(self) -> float:
        """Seconds for explaining a difference, and as many again for a patch."""
        if self.request.budget is not None:
            return self.request.budget
        return max(LEAST_BUDGET_S, BUDGET_RUNS * self.first_seconds)

    @property
    def first_seconds(self) -> float:
        """The seconds that the first run took; 0 before there is one."""
        return self.runs[0].seconds if self.runs else 0.0

    @contextmanager
    def limited(self, reserved_s: float = 0.0) -> Iterator[None]:
        """End running runs and start no more when the budget is spent. Nested blocks add nothing.

        Args:
            reserved_s: seconds of the budget that are left for what comes after.
        """
        outer = self.deadline
        end = time.monotonic() + self.budget_s if outer is None else outer
        self.deadline = end - reserved_s
        try:
            yield
        finally:
            self.deadline = outer

    def overlaid(self, overlay: tuple[tuple[str, str], ...], prefix: str) -> Series:
        """Return a series that runs changed text instead of some files.

        Args:
            overlay: see `RecordingSettings`.
            prefix: of the names of its records, which are those of a patch under trial.
        """
        other = copy.copy(self)
        other._overlay, other._prefix = overlay, prefix
        return other

    def examine(self, child: str, *, count_reads: bool) -> None:
        """Examine this child from now on, as the compared runs have shown.

        Args:
            child: see the attribute.
            count_reads: see the attribute.
        """
        self.child, self.count_reads = child, count_reads

    def mark_first_as_preparation(self) -> None:
        """Count the first run as preparation: it left files that the compared ones read."""
        self.runs[0] = replace(self.runs[0], purpose=Purpose.PREPARE)

    def earlier_files(self, since: int = 0) -> tuple[EarlierFile, ...]:
        """Return the files that the latest compared run read and compared runs before it had written.

        Args:
            since: number of the run, from 0, with which these begin.
        """
        files = read_notes(self._notes[-1]) if self._notes else ()
        return tuple(file for file in files if file.changed >= self._times[since][0])

    def check_folder(self) -> None:
        """Refuse a folder that holds the records of another verification, or cannot hold any.

        Raises:
            SamebitsError: `record-exists` or `record-unwritable`; `resume-folder-large` where a copy of the
                working folder would be too large.
        """
        first = self.request.folder / f"run-1{SUFFIX}"
        if first.exists():
            message = f"{first} exists and is not overwritten; give another --keep, or remove it"
            raise SamebitsError(message, slug="record-exists")
        check_writable(first)
        if self._copy is not None:
            self._copy.check()

    def close(self) -> None:
        """Remove the copy of the working folder, if there is one, and the notes."""
        self._concurrency.close()
        if self._copy is not None:
            self._copy.remove()

    def prepare(self, plans: Sequence[Plan]) -> None:
        """Make runs at the same time, if the request says so; `run` gives each when it is asked for it."""
        if not self.request.all_at_once:
            return
        phase = replace(self._phase(plans), runs=len(plans))
        self._announce(phase)
        made = self._run_jobs([self._job(plan, phase, None) for plan in plans])
        self._prepared = {plan.name: run for plan, run in zip(plans, made, strict=True)}

    def run(self, plan: Plan) -> ScriptRun:
        """Run the script once.

        Raises:
            BudgetSpent: the deadline has passed, or passed while the script ran.
        """
        return self._make((plan,))[0]

    def both(
        self, first: Plan, second: Plan, unless: Callable[[ScriptRun], bool] = lambda _: False
    ) -> tuple[ScriptRun, ScriptRun | None]:
        """Make two runs to be compared: at the same time where that is possible.

        Otherwise the second stops where its state differs from the first's. If one of two simultaneous runs
        fails or has an effect, both are made again one after the other, in case they lacked memory.

        Args:
            first: one run.
            second: the other.
            unless: whether the first makes the second needless, where it is over before that begins.

        Raises:
            BudgetSpent: the deadline has passed, or passed while the script ran.
        """
        made = len(self.runs)
        if self._is_for_two(first, second):
            runs = self._made_at_once(first, second)
            if runs is not None:
                return runs
            self._concurrency.keep_apart()
            self.runs[made:] = [replace(run, purpose=Purpose.CROWDED) for run in self.runs[made:]]
            first, second = (replace(plan, name=f"{plan.name}-alone") for plan in (first, second))
        run = self.run(first)
        if unless(run):
            return run, None
        return run, self.run(replace(second, settings=replace(second.settings, reference=run.record)))

    def _made_at_once(self, first: Plan, second: Plan) -> tuple[ScriptRun, ScriptRun] | None:
        """Make two runs at the same time; None where one failed, had an effect, or could not be started."""
        try:
            runs = self._make((first, second))
        except SamebitsError as error:
            if error.slug != "child-start":
                raise
            return None
        failed = any(run.timed_out or preconditions.has_failed(run) for run in runs)
        return None if failed or not self._concurrency.is_untouched() else (runs[0], runs[1])

    def note_draws(self, drawn: Sequence[Source]) -> None:
        """Take into account which draws differed before the compared runs diverged; see `Concurrency`."""
        self._concurrency.note_draws(drawn)

    def _is_for_two(self, *plans: Plan) -> bool:
        """Tell whether these can be made at the same time: each ends, whether or not it stops early.

        Runs with fixed addresses cannot: noting effects moves addresses, and later runs note none.
        """
        if self.request.all_at_once:
            return True
        ends = all(plan.settings.max_steps is not None or plan.limit_s is not None for plan in plans)
        if not ends or any(map(self._has_fixed_addresses, plans)):
            return False
        return not self.child and self._stdin.can_be_shared() and self._concurrency.allows_two()

    def _has_fixed_addresses(self, plan: Plan) -> bool:
        """Tell whether an intervention or a switch starts the run without address space randomisation."""
        interventions = tuple(dict.fromkeys((*self.request.interventions, *plan.interventions)))
        perturbation = self._with_interventions(NONE, interventions)
        return perturbation.fixed_layout or (holds_layout(self.request.control) and can_fix_layout())

    def _make(self, plans: Sequence[Plan]) -> list[ScriptRun]:
        if len(plans) == 1 and plans[0].name in self._prepared and not self._prefix:
            self.runs.append(self._prepared.pop(plans[0].name))
            return [self.examined(self.runs[-1])]
        left, phase = self._seconds_left(), self._phase(plans)
        self._announce(phase)
        jobs = [self._job(plan, phase, left) for plan in plans]
        jobs[1:] = [replace(job, settings=replace(job.settings, progress=False)) for job in jobs[1:]]
        compared, begun = plans[0].purpose == Purpose.COMPARE, time.time_ns()
        with self._concurrency.measured() if compared else nullcontext():
            runs = self._run_jobs(jobs)
        if compared:
            self._times.append((begun, time.time_ns()))
        self.runs += runs
        if any(run.timed_out for run in runs):
            self._seconds_left()
        if not compared and not self._overlay:
            judged = next((run.info for run in self.runs if run.purpose == Purpose.COMPARE), None)
            for run in runs:
                refuse_other_code(judged, run.info)
        return [self.examined(run) for run in runs]

    def _job(self, plan: Plan, phase: Phase, left: float | None) -> Job:
        """Return the run that a plan asks for, with `left` seconds at most."""
        settings = self._settings(plan, phase)
        perturbation = self._with_interventions(self._perturbation(plan.role), settings.interventions)
        settings = replace(settings, scheduling_noise=perturbation.scheduling_noise)
        if self._has_fixed_addresses(plan):
            # Addresses depend on what is allocated, so both runs must do the same: neither is compared with
            # the other while it runs, both get the same text, and both look for files of an earlier run.
            settings = replace(settings, reference="", phase=plan.description)
            if plan.purpose == Purpose.COMPARE and settings.earlier is None:
                settings = replace(settings, earlier=_nothing_earlier(settings.record))
        output = self._script.output if plan.purpose == Purpose.COMPARE else "nothing"
        script = replace(self._script, output=output, limit_s=_least(left, plan.limit_s))
        if self._copy is not None:
            script, settings = in_copy(self._copy, script, settings)
        return Job(script, settings, Purpose.FIX if self._overlay else plan.purpose, perturbation)

    def _settings(self, plan: Plan, phase: Phase) -> RecordingSettings:
        """Return the settings of the recording that a plan asks for."""
        settings = replace(
            plan.settings,
            record=str(self.request.folder / f"{self._prefix}{plan.name}{SUFFIX}"),
            reference=self._roots.get(plan.settings.reference, plan.settings.reference),
            overlay=self._overlay,
            max_steps=_least(plan.settings.max_steps, None if self.count_reads else self.request.steps),
            count_reads=self.count_reads,
            progress=self.request.progress,
            no_arguments=self.request.no_arguments,
            phase=phase.text(),
            control=self.request.control,
            interventions=tuple(dict.fromkeys((*self.request.interventions, *plan.interventions))),
        )
        if plan.purpose == Purpose.COMPARE:
            settings = replace(settings, earlier=self._earlier(settings.record))
        if plan.purpose == Purpose.COMPARE or phase.runs > 1:
            settings = replace(settings, effects=self._concurrency.notes_for(settings.record))
        return settings

    @property
    def source(self) -> Target:
        """The script that the user would change, or the one that the examined child runs."""
        run = self.examined(self.runs[0]) if self.child and self.runs else None
        command = run.info.command if run is not None and run.info is not None else ()
        if command[:1] == ("-m",) and len(command) > 1:
            return Target(None, command[1], command[2:])
        if command and os.path.isfile(command[0]):
            return Target(command[0], None, command[1:])
        return self.request.target

    def examined(self, run: ScriptRun) -> ScriptRun:
        """Return the run with the record of the child that is examined, if one is."""
        if not self.child:
            return run
        child_run = run_of_child(run, self.child)
        self._roots[child_run.record] = run.record
        return child_run

    def _earlier(self, record: str) -> EarlierRun | None:
        """Return the earlier compared runs, whose files this run looks for."""
        if not self._times:
            return None
        self._notes.append(_notes_of(record))
        return EarlierRun(os.path.abspath(self._notes[-1]), self._times[0][0], self._times[-1][1])

    def _phase(self, plans: Sequence[Plan]) -> Phase:
        latest, plan = self.runs[-_LATEST:], plans[0]
        each = sum(run.seconds for run in latest) / len(latest) if latest else None
        left = None if each is None else each * (1 + plans[-1].more)
        return Phase(plan.description, plan.purpose == Purpose.COMPARE, len(self.runs) + 1, left, len(plans))

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

    def _with_interventions(self, perturbation: Perturbation, interventions: tuple[str, ...]) -> Perturbation:
        """Add what interventions change in a run; they override the perturbation."""
        if not interventions:
            return perturbation
        from samebits.interventions import combine

        request = self.request
        plan = combine(interventions, request.control, {**os.environ, **request.environment})
        variables = {**perturbation.environment, **plan.environment}
        fixed = perturbation.fixed_layout or plan.fixed_layout
        return replace(perturbation, environment=variables, fixed_layout=fixed)

    def pair(
        self, name: str, description: str, settings: RecordingSettings, *, purpose: Purpose, role: int
    ) -> Pair:
        """Run the script twice, as run 0 and run `role`: see `both`."""
        runs = self.both(
            Plan(f"{name}a", description, settings, purpose, 0, more=1),
            Plan(f"{name}b", description, settings, purpose, role),
        )
        return Pair(runs[0], cast("ScriptRun", runs[1]))


def _notes_of(record: str) -> str:
    """Return the path where a run notes the files of earlier runs that it read."""
    return f"{record}.earlier"


def _nothing_earlier(record: str) -> EarlierRun:
    """Return the settings of a run that looks for files of an earlier one, where there was none."""
    now = time.time_ns()
    return EarlierRun(os.path.abspath(_notes_of(record)), now, now)


def _least(*limits: _Number | None) -> _Number | None:
    return min((limit for limit in limits if limit is not None), default=None)
