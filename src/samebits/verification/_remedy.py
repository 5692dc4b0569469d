"""The stages that say what to change and try it: remedies, and patches that make the same change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.causes import specification_of
from samebits.comparison.results import Confirmation
from samebits.diagnosis.attribution import by_source, remedied
from samebits.diagnosis.remedies import at_source_line, with_remedies, with_whole_set
from samebits.errors import SamebitsError
from samebits.records.notes import Note, NoteCode
from samebits.verification._fix import FEW, Aim, Effort, find_fix
from samebits.verification._localise import unseeded_of
from samebits.verification._pair_limits import last_step
from samebits.verification._state import verification_of
from samebits.verification.user_files import read_project

if TYPE_CHECKING:
    from samebits.comparison.results import Comparison, Finding
    from samebits.diagnosis.patches.edits import Project
    from samebits.verification._state import Runner, State
    from samebits.verification.results import Fix


def answer(state: State, runner: Runner) -> None:
    """Tell the user what is known before anything is proven."""
    comparison, _ = _with_remedies(state.comparison, runner)
    known = verification_of(replace(state, comparison=comparison), runner)
    runner.tell(replace(known, localised=True))


def patch_draws(state: State, runner: Runner) -> State:
    """Try the change that the draw log suggests: no intervention is needed where runs are identical with it.

    Returns:
        the state with a `trial` where they were.
    """
    findings = by_source(state.comparison.findings) if _can_patch_draws(state, runner) else ()
    if not findings:
        return state
    comparison = replace(state.comparison, findings=findings)
    one_is_fresh = any(specification_of(each.cause).seeded_by for each in findings)
    causes = sorted(unseeded_of(state.drawn) if one_is_fresh else ())
    interventions = tuple(specification_of(cause).seeded_by for cause in causes)
    aim = Aim(comparison, interventions, state.excluded, shown=True)
    fix = try_patch(runner, aim, Effort(1, 1, last_step(state)))
    if fix is None or not fix.confirmed:
        return state
    confirmation = Confirmation((), fix.pairs, fix.pairs, fix.steps)
    shown = tuple(each.with_confirmation(confirmation) for each in findings)
    return replace(state, comparison=replace(comparison, findings=shown), trial=fix)


def _can_patch_draws(state: State, runner: Runner) -> bool:
    localisation = state.localisation
    if localisation is None or not runner.request.intervene or state.role != 1:
        return False
    return localisation.pair is not None or localisation.too_long


def try_patch(runner: Runner, aim: Aim, effort: Effort) -> Fix | None:
    """Try a patch, and return what its runs showed; None where none is tried."""
    comparison, _ = _with_remedies(aim.comparison, runner)
    findings = [each for each in comparison.findings if not specification_of(each.cause).seeded_by]
    whole = all(each.remedy and each.remedy.changes for each in findings)
    if effort.patches == 1 and not whole:  # a single patch would leave some findings as they are
        return None
    try:
        return find_fix(runner, replace(aim, comparison=comparison), effort)
    except (SamebitsError, OSError):  # other interventions are tried, or more pairs with them
        return None


def remedy(state: State, runner: Runner) -> State:
    """Give each finding whose cause is known a remedy, and the first one all that the interventions did."""
    if not state.differs:
        return state
    comparison, project = _with_remedies(state.comparison, runner)
    if state.confirmed is not None:
        interventions = state.confirmed.interventions
        findings = tuple(remedied(each, state.confirmed) for each in comparison.findings)
        comparison = with_whole_set(replace(comparison, findings=findings), interventions, project)
    elif state.trial is not None:
        remedies = [finding.remedy for finding in comparison.findings if finding.remedy is not None]
        interventions = tuple(dict.fromkeys(name for remedy in remedies for name in remedy.controls))
        comparison = with_whole_set(comparison, interventions, project)
    return replace(state, comparison=comparison)


def _with_remedies(comparison: Comparison, runner: Runner) -> tuple[Comparison, Project]:
    project = read_project(runner.series.source, comparison.findings)
    findings = tuple(at_source_line(each, project) for each in comparison.findings)
    return with_remedies(replace(comparison, findings=findings), project), project


def fix(state: State, runner: Runner) -> State:
    """Look for a patch if one is wanted and none is confirmed, and add its result to the remedies."""
    effort, trial = _effort(state, runner), state.trial
    undone = trial is None or (runner.request.fix and not trial.confirmed)
    if undone and effort is not None:
        interventions = state.confirmed.interventions if state.confirmed is not None else ()
        try:
            trial = find_fix(runner, Aim(state.comparison, interventions, state.excluded), effort)
        except (SamebitsError, OSError) as error:  # the verdict stands
            return state.noted(Note.of(NoteCode.PATCH_SEARCH_FAILED, str(error)))
    if trial is None:
        return state
    findings = tuple(
        _with_trial(each, trial) if number == 0 or trial.is_remedy_of(each) else each
        for number, each in enumerate(state.comparison.findings)
    )
    comparison = replace(state.comparison, findings=findings)
    return replace(state, comparison=comparison, fix=trial if runner.request.fix else None)


def _with_trial(finding: Finding, trial: Fix) -> Finding:
    return replace(finding, remedy=trial.remedy(finding))


def _effort(state: State, runner: Runner) -> Effort | None:
    """Return the limits of the search for a patch; None where none is wanted."""
    if state.interrupted or not state.seen_again or not state.differs:
        return None
    if runner.request.fix:
        return Effort()
    return None if state.confirmed is None else Effort(FEW, FEW, state.confirmed.steps)
