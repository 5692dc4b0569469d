"""The stage that finds the operation: pairs of runs with every operation recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samebits.causes import Cause, OriginKind, specification_of
from samebits.recording.settings import RecordingSettings
from samebits.records.kinds import Level
from samebits.records.notes import Note, NoteCode
from samebits.verification.plans import BudgetSpent
from samebits.verification.results import Purpose

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.comparison.results import Comparison, OriginSearch, Source
    from samebits.verification._state import Runner, State, Tools
    from samebits.verification.plans import Pair

MOST_PAIRS = 3
_FEW_STEPS = 3
_FAILED = ("failed", "running")
_LEAD_STEPS = 2  # steps with operations before the step that differed
_CAPTURED_BYTES = 1 << 26
# Times the first run, plus seconds: reserved for the change that the draw log suggests.
_RESERVED_RUNS, _RESERVED_S = 6.0, 4.0
_SPARE_STEPS = 3  # a race moves: later pairs may go further than the first difference that was seen


@dataclass(frozen=True)
class Localisation:
    """The result of the op-level pairs.

    Args:
        pair: the pair of op-level runs that differed; None when none did.
        origins: where the difference came in.
        pairs: how many pairs were run.
        first_op_step: from which step operations were recorded in `pair`.
        max_steps: after how many steps its runs were to end; None for at their ends.
        failure: why the script could not be run with every operation recorded (from its start, where there
            is a `pair`); empty if it could.
        too_long: whether the time for it was over before a pair was compared.
    """

    pair: Pair | None
    origins: OriginSearch | None
    pairs: int
    first_op_step: int = 0
    max_steps: int | None = None
    failure: str = ""
    too_long: bool = False


def localise(state: State, runner: Runner) -> State:
    """Note the draws that differ before the runs diverge, and look for the operation where they diverge.

    Raises:
        BudgetSpent: there was no time for it.
    """
    pair = state.compared
    with runner.tools.open_record(pair.first.record) as a, runner.tools.open_record(pair.second.record) as b:
        drawn = runner.tools.draws_before(a, b, state.excluded)
    runner.series.note_draws(drawn)
    state = replace(state, drawn=drawn)
    return replace(state, localisation=_localisation(state, runner))


def _localisation(state: State, runner: Runner) -> Localisation:
    if runner.request.level == Level.OP:  # the compared pair has all operations
        origins = origins_of(state.compared, runner.tools, state.excluded)
        if origins is not None:
            return Localisation(state.compared, origins, 0)
    reserved_s = _reserved_seconds(state, runner)
    try:
        with runner.series.limited(reserved_s):
            return find_operation(runner, state.comparison, state.role, state.excluded)
    except BudgetSpent:
        if not reserved_s:
            raise
        return Localisation(None, None, 0, too_long=True)


def _reserved_seconds(state: State, runner: Runner) -> float:
    """Return how much time to reserve for a change that the draw log suggests."""
    request, series = runner.request, runner.series
    if not unseeded_of(state.drawn) or request.quick or not request.intervene:
        return 0.0
    return min(_RESERVED_RUNS * series.first_seconds + _RESERVED_S, series.budget_s / 2)


def unseeded_of(drawn: Iterable[Source]) -> set[Cause]:
    """Return the causes of some draws that are generators which were never seeded."""
    causes = {source.cause for source in drawn}
    return {cause for cause in causes if specification_of(cause).seeded_by}


def has_only_unread(state: State) -> bool:
    """Tell whether all that differs is memory that nothing wrote and nothing read."""
    origins = state.localisation.origins if state.localisation is not None else None
    return origins is not None and bool(origins.unread) and not origins.findings


def take_origins(state: State) -> State:
    """Replace the findings of the steps by the origins, if there are any."""
    if state.localisation is None:
        return state
    comparison = with_origins(state.comparison, state.localisation)
    findings = comparison.findings
    # Where the first origin names no source, it may be a draw that differs before the runs diverge.
    if findings and not findings[0].origin.sources and findings[0].cause == Cause.UNKNOWN:
        findings = (findings[0].with_sources(state.drawn), *findings[1:])
    return replace(state, comparison=replace(comparison, findings=findings))


def find_operation(
    runner: Runner, comparison: Comparison, role: int, excluded: tuple[str, ...] = ()
) -> Localisation:
    """Run pairs at op level until one differs, and follow the difference to where it came in.

    Args:
        runner: makes the runs and compares them.
        comparison: what the step-level pair said.
        role: which of the compared runs differed from the first.
        excluded: names of state tensors that are left out.

    Raises:
        BudgetSpent: there was no time for it.
    """
    # Without a step that differs, one run went on where the other ended: then each pair runs to its end.
    # The same holds where several threads make steps, because step numbers then change from run to run.
    ends_differ = comparison.first_step is None or comparison.several_threads
    step = comparison.steps if comparison.first_step is None else comparison.first_step
    start = 0 if step <= _FEW_STEPS or comparison.several_threads else step - _LEAD_STEPS
    last = None if ends_differ else step + 1
    best: Localisation | None = None
    for attempt in range(1, MOST_PAIRS + 1):
        description = "looking for the operation" + (f", attempt {attempt}" if attempt > 1 else "")
        settings = RecordingSettings(
            record="",
            level=Level.OP,
            first_op_step=start,
            max_steps=last,
            excluded=excluded,
            keep_bytes=_CAPTURED_BYTES,
            keep_from_step=step if start else 0,
        )
        try:
            pair = runner.series.pair(
                f"op-{attempt}", description, settings, purpose=Purpose.LOCALISE, role=role
            )
        except BudgetSpent:
            if best is None:
                raise
            return best
        origins = origins_of(pair, runner.tools, excluded, until=runner.series.deadline)
        if origins is not None:
            best = Localisation(pair, origins, attempt, start, last)
            if start == 0 or not came_before(origins):
                return best
            start = 0
        elif failed(pair):
            return replace(best or Localisation(None, None, attempt), failure=failed(pair))
        elif attempt == MOST_PAIRS - 1:
            start = 0
        last = None if ends_differ else step + 1 + _SPARE_STEPS
    return best or Localisation(None, None, MOST_PAIRS)


def failed(pair: Pair) -> str:
    """Return how a run of the pair failed; empty if none did."""
    infos = [run.info for run in (pair.first, pair.second)]
    if None in infos:
        return "a run left no record"
    return next((info.failure or info.status for info in infos if info and info.status in _FAILED), "")


def origins_of(
    pair: Pair,
    tools: Tools,
    excluded: tuple[str, ...] = (),
    explained: tuple[tuple[Cause, str, int], ...] = (),
    until: float | None = None,
) -> OriginSearch | None:
    """Find the origins in an op-level pair; None when nothing differs, or a record is missing.

    Args:
        pair: the runs.
        tools: compare them.
        excluded: names of state tensors that are left out.
        explained: see `find_origins`.
        until: see `find_origins`.
    """
    if pair.first.info is None or pair.second.info is None:
        return None
    with tools.open_record(pair.first.record) as a, tools.open_record(pair.second.record) as b:
        comparison = tools.judge(a, b, excluded)
        if comparison.verdict != "different":
            return None
        return tools.find_origins(a, b, excluded, explained, until)


def came_before(origins: OriginSearch) -> bool:
    """Tell whether a value that differed may have been written before operations were recorded."""
    if not origins.findings:
        return not origins.unread
    return any(finding.origin.origin_kind == OriginKind.OUTSIDE for finding in origins.findings)


def with_origins(comparison: Comparison, localisation: Localisation) -> Comparison:
    """Return the verdict of the step-level pair with the findings of the op-level pair."""
    if localisation.origins is None:
        return replace(comparison, notes=(_note_without_origins(localisation), *comparison.notes))
    notes = (
        *comparison.notes,
        *(note for note in localisation.origins.notes if note not in comparison.notes),
    )
    if localisation.failure:
        notes = (*notes, Note.of(NoteCode.OPS_FAILED_FROM_START, localisation.failure))
    if not localisation.origins.findings:
        return replace(comparison, notes=(*notes, Note.of(NoteCode.NO_OP_BLAMED)))
    return replace(comparison, findings=localisation.origins.findings, notes=notes)


def _note_without_origins(localisation: Localisation) -> Note:
    if localisation.too_long:
        return Note.of(NoteCode.OPS_TAKE_TOO_LONG)
    if localisation.failure:
        return Note.of(NoteCode.OPS_FAILED, localisation.failure)
    return Note.of(NoteCode.OPS_AGREED, localisation.pairs)
