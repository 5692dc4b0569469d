"""The search for a patch: runs use patched copies of the user's files, which stay as they are."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samebits._text import files
from samebits.comparison.reasons import Reason, ReasonCode
from samebits.comparison.results import Comparison
from samebits.diagnosis.patches.edits import Patch, PatchedFile, changed_line
from samebits.diagnosis.patches.propose import propose
from samebits.errors import SamebitsError
from samebits.recording.settings import RecordingSettings
from samebits.verification import preconditions
from samebits.verification._judge import judged
from samebits.verification._localise import find_operation, with_origins
from samebits.verification._pair_limits import least_steps, pairs_needed, time_limit
from samebits.verification.plans import BudgetSpent, Pair, Plan
from samebits.verification.results import Fix, Purpose
from samebits.verification.user_files import read_project

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from samebits.comparison.results import Finding, Origin
    from samebits.diagnosis.patches.edits import Project
    from samebits.verification._state import Runner
    from samebits.verification.results import ScriptRun
    from samebits.verification.series import Series

MOST_ROUNDS = 4
FEW = 2  # rounds, and patches, where interventions have shown the cause and no patch was asked for
_MOST_TRIED = 6
_TRIAL = "fix-"


@dataclass(frozen=True)
class Effort:
    """The limits of the search for a patch.

    Args:
        rounds: how often a patch is extended by one for the origin that remains.
        patches: how many are tried in all.
        max_steps: after how many steps the runs are ended; None lets them go to their ends.
    """

    rounds: int = MOST_ROUNDS
    patches: int = _MOST_TRIED
    max_steps: int | None = None


@dataclass(frozen=True)
class Aim:
    """The difference that a patch is to remove.

    Args:
        comparison: the difference, with its origins.
        interventions: names of the interventions that made the runs identical.
        excluded: names of state tensors that are left out.
        shown: whether something else shows the cause too: interventions with which a pair was identical, or
            draws that differed. Then no more pairs are made than are needed.
    """

    comparison: Comparison
    interventions: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    shown: bool = False


@dataclass(frozen=True)
class _Trial:
    """The result of runs with a patch: `still` says what differed, None where they were identical."""

    pairs: int
    still: Reason | None
    comparison: Comparison | None = None


def find_fix(runner: Runner, aim: Aim, effort: Effort = Effort()) -> Fix:
    """Look for a patch with which the runs are identical.

    Pairs of runs try each patch. If another origin comes first with a patch, the patch stays, and that origin
    is patched as well.

    Args:
        runner: makes the runs and compares them.
        aim: the difference that the patch is to remove.
        effort: how much is done for it.

    Raises:
        SamebitsError: the patched files cannot be written (`record-unwritable`), or a record cannot be read.
    """
    search = _Search(runner, aim, effort)
    with runner.series.limited():
        return search.run()


class _Search:
    """One search for a patch.

    Args:
        runner: makes the runs and compares them.
        aim: the difference that the patch is to remove.
        effort: how much is done for it.
    """

    def __init__(self, runner: Runner, aim: Aim, effort: Effort) -> None:
        self._runner, self._series = runner, runner.series
        self._aim, self._effort = aim, effort
        self._original = read_project(runner.series.source, aim.comparison.findings)
        self._least_steps = least_steps(aim.comparison)
        runs = runner.series.runs
        self._limit_s = time_limit(runner.series.first_seconds) if runs else None
        purposes = [run.purpose for run in runs]
        self._n_identical = sum(max(0, purposes.count(each) - 2) for each in (Purpose.COMPARE, Purpose.AGAIN))
        self._n_before = len({_trial_of(run) for run in runs if run.purpose == Purpose.FIX})
        self._n_tried = 0
        self._refusals: list[str] = []
        self._why: list[str] = []
        self._untried: Fix | None = None

    def run(self) -> Fix:
        best: Fix | None = None
        try:
            for best in self._improvements(self._aim.comparison.findings):  # noqa: B007 - the last one counts
                pass
        except BudgetSpent:
            best = best or self._untried
        if best is None:
            return Fix(None, self._original.root, refusals=tuple(dict.fromkeys(self._refusals)))
        return replace(best, refusals=() if best.confirmed else tuple(dict.fromkeys(self._refusals)))

    def _improvements(self, findings: Sequence[Finding]) -> Iterator[Fix]:
        """Yield patches, each of which extends the one before it."""
        project, needed = self._original, 1
        for _ in range(self._effort.rounds):
            needed = max(needed, self._pairs_needed(findings))
            step = self._round(project, findings, needed)
            if step is None:
                return
            project, trial = step
            yield self._fix(project, trial)
            if trial.still is None or trial.comparison is None:
                return
            findings = trial.comparison.findings

    def _pairs_needed(self, findings: Sequence[Finding]) -> int:
        causes = {finding.cause for finding in findings}
        causes |= {source.cause for finding in findings for source in finding.origin.sources}
        least, better = pairs_needed(causes, self._n_identical)
        return least if self._aim.shown else better

    def _round(
        self, project: Project, findings: Sequence[Finding], needed: int
    ) -> tuple[Project, _Trial] | None:
        """Return the first patch that helps: nothing differs with it, or another origin comes first."""
        proposal = propose(findings, project, interventions=self._aim.interventions)
        self._refusals += proposal.refusals
        failed: tuple[Project, _Trial] | None = None
        for patch in proposal.patches:
            if self._n_tried >= self._effort.patches:
                break
            patched = project.replaced(tuple(file.after for file in patch.files))
            if self._untried is None:
                self._untried = Fix(patch, self._original.root, still=Reason.of(ReasonCode.NO_TIME_TO_TRY))
            trial = self._try(patched, needed)
            if trial.still is None or _is_another(trial.comparison, findings):
                self._why += patch.why
                return patched, trial
            failed = failed or (patched, replace(trial, comparison=None))
        if failed is not None and not self._why:
            self._why += proposal.patches[0].why
        return failed if project is self._original else None

    def _try(self, project: Project, needed: int) -> _Trial:
        self._n_tried += 1
        series = self._patched_series(project)
        first, second = series.both(
            self._plan(0, needed), self._plan(1, needed), unless=preconditions.has_failed
        )
        if second is None or preconditions.has_failed(first):
            return _Trial(0, _how_failed(first))
        for number in range(1, needed + 1):
            if number > 1:
                second = series.run(self._plan(number, needed, first.record))
            comparison = self._judged(Pair(first, second))
            if comparison.verdict == "different":
                if self._effort.rounds > 1:  # the next origin is patched as well
                    comparison = self._located(project, comparison)
                return _Trial(number - 1, _still(comparison), comparison)
            if comparison.verdict != "identical":
                return _Trial(number - 1, comparison.reason or Reason.of(ReasonCode.PATCH_NOT_JUDGED))
        return _Trial(needed, None)

    def _plan(self, number: int, needed: int, reference: str = "") -> Plan:
        settings = RecordingSettings(
            record="",
            reference=reference,
            excluded=self._aim.excluded,
            max_steps=self._effort.max_steps,
        )
        more = max(0, needed - max(number, 1))
        return Plan(
            str(number + 1), "trying a patch", settings, Purpose.FIX, number, self._limit_s, more=more
        )

    def _patched_series(self, project: Project) -> Series:
        return self._series.overlaid(self._written(project), f"{_TRIAL}{self._n_before + self._n_tried}-")

    def _judged(self, pair: Pair) -> Comparison:
        runs, target = (pair.first, pair.second), self._series.request.target
        reason = preconditions.failure(runs, target)
        if reason or pair.first.info is None or pair.second.info is None:
            return Comparison("not_judged", Reason.of(ReasonCode.WITH_PATCH, reason), 0)
        comparison, _ = judged(pair, self._runner.tools, target, self._aim.excluded)
        if comparison.verdict == "identical" and comparison.steps < self._least_steps:
            reason = Reason.of(ReasonCode.ENDS_EARLY, comparison.steps)
            return replace(comparison, verdict="not_judged", reason=reason)
        return comparison

    def _located(self, project: Project, comparison: Comparison) -> Comparison:
        """Return the comparison with the origins of what still differs."""
        runner = replace(self._runner, series=self._patched_series(project))
        localisation = find_operation(runner, comparison, 1, self._aim.excluded)
        return with_origins(comparison, localisation)

    def _written(self, project: Project) -> tuple[tuple[str, str], ...]:
        """Write the changed files of a project beside the records; return (original, copy) of each."""
        folder = self._series.request.folder / "fix" / str(self._n_before + self._n_tried)
        pairs = []
        for number, file in enumerate(self._changed(project)):
            path = folder / f"{number}-{os.path.basename(file.after.path)}"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                files.write_whole(path, file.after.data)
            except OSError as error:
                message = f"cannot write {path}: {error.strerror}; give another --keep"
                raise SamebitsError(message, slug="record-unwritable") from None
            pairs.append((os.path.realpath(file.after.path), str(path.absolute())))
        return tuple(pairs)

    def _changed(self, project: Project) -> list[PatchedFile]:
        pairs = zip(self._original.files, project.files, strict=True)
        return [PatchedFile(before, after) for before, after in pairs if before.data != after.data]

    def _fix(self, project: Project, trial: _Trial) -> Fix:
        files = self._changed(project)
        first = changed_line(files[0].before, files[0].after)
        patch = Patch(tuple(files), tuple(dict.fromkeys(self._why)), first)
        confirmed = trial.still is None
        steps = self._effort.max_steps
        return Fix(patch, self._original.root, trial.pairs, confirmed, trial.still, steps=steps)


def _trial_of(run: ScriptRun) -> str:
    """Return the number of the patch that a run was made with."""
    return os.path.basename(run.record).removeprefix(_TRIAL).partition("-")[0]


def _how_failed(run: ScriptRun) -> Reason:
    """Say how a run with a patch failed."""
    if run.timed_out:
        return Reason.of(ReasonCode.PATCH_TIMED_OUT, run.seconds)
    said = run.info.failure if run.info is not None else ""
    return Reason.of(ReasonCode.PATCH_FAILED, said, run.status)


def _is_another(comparison: Comparison | None, before: Sequence[Finding]) -> bool:
    """Tell whether what differed first without a patch no longer differs with it."""
    if comparison is None or not comparison.findings or not before:
        return False
    return _signature(before[0].origin) not in [_signature(finding.origin) for finding in comparison.findings]


def _signature(origin: Origin) -> object:
    """Return the facts of an origin that stay when its line moves."""
    site = origin.site
    return (
        origin.kind,
        origin.op,
        (site.file, site.function) if site is not None else None,
        origin.module,
    )


def _still(comparison: Comparison) -> Reason:
    """Say what still differs, and where."""
    site = comparison.findings[0].origin.site if comparison.findings else None
    return Reason.of(ReasonCode.STILL_DIFFERS, site, comparison.first_step)
