"""The whole of a verification: run, run again, compare; on a difference find out where and by how much."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.comparison.results import Comparison
from samebits.diagnosis.attribution import remedied
from samebits.diagnosis.remedies import with_remedies
from samebits.diagnosis.source_lines import at_source_line
from samebits.errors import SamebitsError
from samebits.recording.settings import RecordingSettings
from samebits.verification import fitness
from samebits.verification.explain import INTERRUPTED, Explainer, Explanation
from samebits.verification.fix import find_fix
from samebits.verification.judging import judged
from samebits.verification.perturbation import STRESS_WORDS
from samebits.verification.place import check_target
from samebits.verification.replay import with_replay
from samebits.verification.results import ScriptRun, Verification
from samebits.verification.series import Pair, Plan, Series
from samebits.verification.tools import Tools
from samebits.verification.user_files import read_project

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from samebits.comparison.results import Origins
    from samebits.verification.fix_results import Fix
    from samebits.verification.request import VerifyRequest


def verify(
    request: VerifyRequest, *, announce: Callable[[str], None] | None = None, tools: Tools | None = None
) -> Verification:
    """Run a script several times in fresh processes and say whether it gives the same bits.

    Args:
        request: what is verified, and how.
        announce: told in words what is about to run.
        tools: how runs are made and compared.

    Raises:
        SamebitsError: the script cannot be run, or the records cannot be written.
        KeyboardInterrupt: by Ctrl-C before there is a verdict; records are kept.
    """
    used = tools or Tools()
    return _Verifier(request, Series(request, announce, used.run_script), used).verify()


class _Verifier:
    """The steps of one verification."""

    def __init__(self, request: VerifyRequest, series: Series, tools: Tools) -> None:
        self.request = request
        self.series = series
        self.tools = tools
        self._n_values: dict[str, int] = {}
        self._started = time.monotonic()

    def verify(self) -> Verification:
        check_target(self.request.target)
        self.series.check_folder()
        first = self._run(0)
        reason = fitness.nothing_to_compare(first, self.request.target)
        if reason:
            return self._result(Comparison("not_judged", reason, _steps(first)))
        for role in range(1, self.request.runs):
            pair = Pair(first, self._run(role, reference=first.record))
            comparison = self._judged(pair)
            if comparison.verdict != "identical":
                break
        explanation = Explanation(comparison)
        if comparison.verdict == "different" and self.request.localise:
            explainer = Explainer(self.series, self.tools, role, self._without)
            explanation = explainer.explain(comparison, pair)
        return self._finished(explanation, first)

    def _finished(self, explanation: Explanation, first: ScriptRun) -> Verification:
        """What follows the explanation; where Ctrl-C ends it, what is known is the result."""
        comparison, fix, interrupted = self._remedied(explanation), None, explanation.interrupted
        try:
            wanted = self.request.fix and explanation.seen_again and not interrupted
            if comparison.verdict == "different" and wanted:
                comparison, fix = self._fixed(comparison, explanation.excused)
            if comparison.verdict != "not_judged" and self.request.replay and not interrupted:
                comparison = with_replay(self.series, self.tools, comparison, first, self.request.replay)
        except KeyboardInterrupt:
            interrupted = True
            comparison = replace(comparison, notes=(INTERRUPTED, *comparison.notes))
        return self._result(comparison, fix, interrupted=interrupted)

    def _remedied(self, explanation: Explanation) -> Comparison:
        """The comparison with remedies."""
        comparison, confirmed = explanation.comparison, explanation.confirmed
        if comparison.verdict != "different":
            return comparison
        project = read_project(self.request.target, comparison.findings)
        findings = tuple(at_source_line(each, project) for each in comparison.findings)
        comparison = with_remedies(replace(comparison, findings=findings), project)
        if confirmed is None:
            return comparison
        findings = tuple(remedied(each, confirmed) for each in comparison.findings)
        return replace(comparison, findings=findings)

    def _fixed(self, comparison: Comparison, excused: tuple[str, ...]) -> tuple[Comparison, Fix | None]:
        """The comparison with what a patch showed, and the patch."""
        try:
            fix = find_fix(self.series, self.tools, comparison, excused)
        except (SamebitsError, OSError) as error:  # the verdict stands
            note = f"the search for a patch ended early: {error}"
            return replace(comparison, notes=(note, *comparison.notes)), None
        findings = tuple(
            replace(each, remedy=fix.remedy(each)) if number == 0 else each
            for number, each in enumerate(comparison.findings)
        )
        return replace(comparison, findings=findings), fix

    def _run(self, role: int, *, reference: str = "", excused: tuple[str, ...] = ()) -> ScriptRun:
        """One of the runs that are compared."""
        settings = RecordingSettings(
            record="",
            level=self.request.level,
            reference="" if self.request.full else reference,
            excused=excused,
        )
        words = f"run {role + 1} of {self.request.runs}"
        if excused:
            plan = Plan(
                f"run-{role + 1}-excused",
                f"{words}, memory that nothing read left out",
                settings,
                "excuse",
                role,
            )
        else:
            plan = Plan(f"run-{role + 1}", words, settings, role=role)
        return self.series.run(plan)

    def _judged(self, pair: Pair, excused: Collection[str] = ()) -> Comparison:
        """The verdict over two runs, unless the script itself failed."""
        runs, target = (pair.first, pair.second), self.request.target
        reason = fitness.failure(runs, target)
        if pair.second.info is None:
            return Comparison("not_judged", reason, _steps(pair.first))
        comparison, n_values = judged(pair, self.tools, target, excused)
        self._n_values[Path(pair.second.record).stem.removesuffix("-excused")] = n_values
        if reason:
            return _with_failure(comparison, reason)
        note = fitness.exit_note(runs, target) if comparison.verdict != "not_judged" else ""
        return replace(comparison, notes=(*comparison.notes, note)) if note else comparison

    def _without(self, origins: Origins, pair: Pair, role: int) -> tuple[Comparison, Pair]:
        """The verdict without state that differs only in memory that nothing wrote and nothing read.

        The second run was stopped where that memory differed, so it is made again to go further.
        """
        if not self.request.full:
            pair = Pair(pair.first, self._run(role, reference=pair.first.record, excused=origins.unread))
        judged = self._judged(pair, origins.unread)
        notes = (*judged.notes, *(note for note in origins.notes if note not in judged.notes))
        return replace(judged, notes=notes), pair

    def _result(
        self, comparison: Comparison, fix: Fix | None = None, *, interrupted: bool = False
    ) -> Verification:
        seconds = time.monotonic() - self._started
        comparison = replace(comparison, notes=self._notes(comparison))
        target = self.request.target
        name = (target.script,) if target.script is not None else ("-m", str(target.module))
        return Verification(
            comparison,
            (*name, *target.arguments),
            tuple(self.series.runs),
            seconds,
            sum(self._n_values.values()),
            fix,
            interrupted,
        )

    def _notes(self, comparison: Comparison) -> tuple[str, ...]:
        """The notes, with what `--stress` changed instead of the differences in environment that it makes."""
        if not self.request.stress:
            return comparison.notes
        compared = (run for run in self.series.runs if run.purpose == "compare")
        kept = (note for note in comparison.notes if not any(word in note for word in STRESS_WORDS))
        stress = (
            f"stress in run {n}: {', '.join(run.perturbation)}" for n, run in enumerate(compared, start=1)
        )
        return (*kept, *stress)


def _steps(run: ScriptRun) -> int:
    return 0 if run.info is None else run.info.steps


def _with_failure(comparison: Comparison, reason: str) -> Comparison:
    """A difference before the failure is a verdict, and often its cause; without one there is none."""
    if comparison.verdict == "different":
        return replace(comparison, notes=(*comparison.notes, reason))
    return replace(comparison, verdict="not_judged", reason=reason)
