"""The whole of a verification: run, run again, compare; on a difference find out where and by how much."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.causes import specification_of
from samebits.comparison.results import Comparison
from samebits.diagnosis.attribution import remedied
from samebits.diagnosis.remedies import with_remedies, with_whole_set
from samebits.diagnosis.source_lines import at_source_line
from samebits.errors import SamebitsError
from samebits.recording.notes import Note, NoteCode
from samebits.recording.settings import RecordingSettings
from samebits.verification import fitness
from samebits.verification.earlier_files import blamed, note_of
from samebits.verification.explain import Explainer, Explanation, with_failure
from samebits.verification.fix import LITTLE, Aim, Effort, find_fix
from samebits.verification.judging import judged
from samebits.verification.perturbation import is_of_stress
from samebits.verification.place import check_target
from samebits.verification.pruning import pruned
from samebits.verification.replay import with_replay
from samebits.verification.results import ScriptRun, Verification
from samebits.verification.series import Pair, Phase, Plan, Series
from samebits.verification.tools import Tools
from samebits.verification.user_files import read_project

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from samebits.comparison.results import Origins, Verdict
    from samebits.diagnosis.patches.source_file import Project
    from samebits.verification.earlier_files import EarlierFile
    from samebits.verification.fix_results import Fix
    from samebits.verification.request import VerifyRequest


def verify(
    request: VerifyRequest,
    *,
    announce: Callable[[Phase], None] | None = None,
    tell: Callable[[Verification], None] | None = None,
    tools: Tools | None = None,
) -> Verification:
    """Run a script several times in fresh processes and say whether it gives the same bits.

    Args:
        request: what is verified, and how.
        announce: told what is about to run.
        tell: told what is known so far, when the runs are known to differ, and when the operation is found.
        tools: how runs are made and compared.

    Raises:
        SamebitsError: the script cannot be run, or the records cannot be written.
        KeyboardInterrupt: by Ctrl-C before there is a verdict; records are kept.
    """
    used = tools or Tools()
    series = Series(request, announce, used.run_jobs)
    try:
        result = _Verifier(request, series, used, tell or (lambda _: None)).verify()
        return result if request.keep_records else pruned(result)
    finally:
        series.close()


class _Verifier:
    """The steps of one verification."""

    def __init__(
        self, request: VerifyRequest, series: Series, tools: Tools, tell: Callable[[Verification], None]
    ) -> None:
        self.request = request
        self.series = series
        self.tools = tools
        self._tell = tell
        self._n_values: dict[str, int] = {}
        self._known: tuple[Comparison, int] | None = None  # of how many runs
        self._started = time.monotonic()

    def verify(self) -> Verification:
        check_target(self.request.target)
        self.series.check_folder()
        first = self._run(0)
        reason = fitness.nothing_to_compare(first, self.request.target)
        if reason:
            notes = () if first.info is None else first.info.notes
            return self._result(Comparison("not_judged", reason, _steps(first), notes=notes))
        try:
            comparison, pair, role = self._compared(first)
        except KeyboardInterrupt:
            if self._known is None:
                raise
            return self._result(_cut_short(*self._known, self.request.runs), interrupted=True)
        explains = self.request.localise
        files = self.series.earlier_files()
        if files:
            comparison, pair, explains = self._after_files(comparison, pair, role, files)
        self.series.count_reads = comparison.counts_reads
        pair = self._focused(comparison, pair)
        explanation = Explanation(comparison)
        passed = self.request.state_only and comparison.state == "identical"
        if comparison.verdict == "different" and explains and not passed:
            self._tell(self._result(comparison))
            explainer = Explainer(
                self.series, self.tools, role, self._without, self._try_patch, self._first_answer
            )
            explanation = explainer.explain(comparison, pair)
        return self._finished(explanation, first)

    def _first_answer(self, comparison: Comparison) -> None:
        known = self._result(self._with_remedies(comparison)[0])
        self._tell(replace(known, localised=True))

    def _compared(self, first: ScriptRun) -> tuple[Comparison, Pair, int]:
        """The verdict over the first pair whose state differs, else over the first that differs at all."""
        found: tuple[Comparison, Pair, int] | None = None
        for role in range(1, self.request.runs):
            pair = Pair(first, self._run(role, reference=first.record))
            comparison = self._judged(pair)
            if comparison.verdict == "identical" and _was_stopped(pair, self.request.steps):
                # It saw a difference that is none to who knows the whole step: its rest is to be seen too.
                pair = Pair(first, self._run(role, again=True))
                comparison = self._judged(pair)
            if "identical" not in (comparison.verdict, comparison.state):
                return comparison, pair, role
            if found is None or found[0].verdict == "identical":
                found = comparison, pair, role
            self._known = found[0], role + 1
        assert found is not None  # noqa: S101 - there are two runs at least
        return found

    def _after_files(
        self, comparison: Comparison, pair: Pair, role: int, files: tuple[EarlierFile, ...]
    ) -> tuple[Comparison, Pair, bool]:
        """The verdict where the last run read what one before it had written; whether it is to be explained.

        Such a run did other work, so where it differs one more run is compared with it.
        """
        latest = sum(run.purpose == "compare" for run in self.series.runs)
        note, explains = note_of(files, latest), self.request.localise
        if comparison.verdict == "different" and role == latest - 1:
            self.series.runs[0] = replace(self.series.runs[0], purpose="prepare")
            pair = Pair(pair.second, self._run(latest, reference=pair.second.record))
            known, comparison = comparison, self._judged(pair)
            if comparison.verdict == "identical":
                note = note_of(files, latest, str(known.reason))
            again = self.series.earlier_files(latest - 1)
            if comparison.verdict == "different" and again:
                note, explains = note_of(again, latest + 1), False
                comparison = blamed(comparison, again)
        return replace(comparison, notes=(note, *comparison.notes)), pair, explains

    def _focused(self, comparison: Comparison, pair: Pair) -> Pair:
        """The pair that is explained: where a child process of the script differs, its records."""
        if comparison.verdict != "different":
            return pair
        self.series.child = comparison.child
        return Pair(self.series.focused(pair.first), self.series.focused(pair.second))

    def _finished(self, explanation: Explanation, first: ScriptRun) -> Verification:
        """What follows the explanation; where Ctrl-C ends it, what is known is the result."""
        comparison, fix, interrupted = explanation.comparison, None, explanation.interrupted
        try:
            comparison = self._remedied(explanation)
            comparison, fix = self._with_fix(comparison, explanation)
            if comparison.verdict != "not_judged" and self.request.replay and not interrupted:
                comparison = with_replay(self.series, self.tools, comparison, first, self.request.replay)
        except KeyboardInterrupt:
            interrupted = True
            comparison = replace(comparison, notes=(Note.of(NoteCode.INTERRUPTED), *comparison.notes))
        except Exception:  # noqa: BLE001 - a bug of ours: the verdict stands, and what is known so far
            comparison = with_failure(comparison)
        return self._result(comparison, fix, interrupted=interrupted)

    def _effort(self, explanation: Explanation) -> Effort | None:
        """How much is done for a patch; None where nothing is to be tried."""
        different = explanation.comparison.verdict == "different"
        if explanation.interrupted or not explanation.seen_again or not different:
            return None
        if self.request.fix:
            return Effort()
        confirmed = explanation.confirmed
        return None if confirmed is None else Effort(LITTLE, LITTLE, confirmed.steps)

    def _remedied(self, explanation: Explanation) -> Comparison:
        """The comparison with remedies."""
        comparison, confirmed = explanation.comparison, explanation.confirmed
        if comparison.verdict != "different":
            return comparison
        comparison, project = self._with_remedies(comparison)
        if explanation.fix is not None and confirmed is None:
            remedies = [finding.remedy for finding in comparison.findings if finding.remedy is not None]
            pins = dict.fromkeys(pin for remedy in remedies for pin in remedy.controls)
            return with_whole_set(comparison, tuple(pins), project)
        if confirmed is None:
            return comparison
        findings = tuple(remedied(each, confirmed) for each in comparison.findings)
        return with_whole_set(replace(comparison, findings=findings), confirmed.pins, project)

    def _with_remedies(self, comparison: Comparison) -> tuple[Comparison, Project]:
        project = read_project(self.series.source, comparison.findings)
        findings = tuple(at_source_line(each, project) for each in comparison.findings)
        return with_remedies(replace(comparison, findings=findings), project), project

    def _try_patch(self, aim: Aim, effort: Effort) -> Fix | None:
        """What runs with a patch show; None where none is tried."""
        comparison = self._with_remedies(aim.comparison)[0]
        findings = [each for each in comparison.findings if not specification_of(each.cause).seeded_by]
        whole = all(each.remedy and each.remedy.changes for each in findings)
        if effort.patches == 1 and not whole:  # the one patch would leave some as they are
            return None
        try:
            return find_fix(self.series, self.tools, replace(aim, comparison=comparison), effort)
        except (SamebitsError, OSError):  # other pins are tried, or more pairs with them
            return None

    def _with_fix(self, comparison: Comparison, explanation: Explanation) -> tuple[Comparison, Fix | None]:
        """The comparison with what a patch showed, and the patch where one was asked for."""
        fix, effort = explanation.fix, self._effort(explanation)
        undone = fix is None or (self.request.fix and not fix.confirmed)
        if undone and effort is not None:
            pins = explanation.confirmed.pins if explanation.confirmed is not None else ()
            try:
                fix = find_fix(self.series, self.tools, Aim(comparison, pins, explanation.excused), effort)
            except (SamebitsError, OSError) as error:  # the verdict stands
                note = Note.of(NoteCode.PATCH_SEARCH_FAILED, str(error))
                return replace(comparison, notes=(note, *comparison.notes)), None
        if fix is None:
            return comparison, None
        findings = tuple(
            replace(each, remedy=fix.remedy(each)) if number == 0 or fix.speaks_for(each) else each
            for number, each in enumerate(comparison.findings)
        )
        return replace(comparison, findings=findings), fix if self.request.fix else None

    def _run(
        self, role: int, *, reference: str = "", excused: tuple[str, ...] = (), again: bool = False
    ) -> ScriptRun:
        """One of the runs that are compared; `again` if there was one already, which ended early."""
        settings = RecordingSettings(
            record="",
            level=self.request.level,
            reference="" if self.request.full else reference,
            excused=excused,
        )
        words = f"run {role + 1} of {max(role + 1, self.request.runs)}"
        if excused:
            plan = Plan(
                f"run-{role + 1}-excused",
                f"{words}, memory that nothing read left out",
                settings,
                "excuse",
                role,
            )
        else:
            more = self.request.runs - role - 1
            plan = Plan(f"run-{role + 1}", words, settings, role=role, more=more)
            if again:
                plan = replace(plan, name=f"run-{role + 1}-whole", purpose="excuse")
        return self.series.run(plan)

    def _judged(self, pair: Pair, excused: Collection[str] = ()) -> Comparison:
        """The verdict over two runs, unless the script itself failed."""
        runs, target = (pair.first, pair.second), self.request.target
        reason = fitness.failure(runs, target)
        if pair.second.info is None:
            return Comparison("not_judged", reason, _steps(pair.first))
        comparison, n_values = judged(pair, self.tools, target, excused)
        self._n_values[Path(pair.second.record).stem.removesuffix("-excused").removesuffix("-whole")] = (
            n_values
        )
        if reason:
            return _with_failure(comparison, reason)
        note = fitness.exit_note(runs, target) if comparison.verdict != "not_judged" else None
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
            quick=self.request.quick,
        )

    def _notes(self, comparison: Comparison) -> tuple[Note, ...]:
        """The notes, with what `--stress` changed instead of the differences in environment that it makes."""
        if not self.request.stress:
            return comparison.notes
        compared = (run for run in self.series.runs if run.purpose == "compare")
        kept = (
            note
            for note in comparison.notes
            if note.code is not NoteCode.ENVIRONMENT or not is_of_stress(note.arguments[0])
        )
        stress = (Note.of(NoteCode.STRESS, n, *run.perturbation) for n, run in enumerate(compared, start=1))
        return (*kept, *stress)


def _was_stopped(pair: Pair, steps: int | None) -> bool:
    """Whether the second run was stopped where its state seemed to differ."""
    a, b = pair.first.info, pair.second.info
    return (
        steps is None and a is not None and b is not None and (a.status, b.status) == ("finished", "stopped")
    )


def _steps(run: ScriptRun) -> int:
    return 0 if run.info is None else run.info.steps


def _cut_short(comparison: Comparison, runs: int, asked: int) -> Comparison:
    """What is known of some of the runs when the user ended it."""
    if comparison.verdict != "identical":
        return replace(comparison, notes=(Note.of(NoteCode.INTERRUPTED), *comparison.notes))
    reason = f"interrupted after {runs} of {asked} runs, which gave the same bits"
    return replace(comparison, verdict="not_judged", state="not_judged", reason=reason)


def _with_failure(comparison: Comparison, reason: str) -> Comparison:
    """A difference before the failure is a verdict, and often its cause; without one there is none."""
    if comparison.verdict == "different":
        state: Verdict = "different" if comparison.state == "different" else "not_judged"
        return replace(comparison, notes=(*comparison.notes, Note.of(NoteCode.UNFIT, reason)), state=state)
    return replace(comparison, verdict="not_judged", state="not_judged", reason=reason)
