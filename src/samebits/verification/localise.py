"""Finding the operation: pairs of runs with every operation recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samebits.causes import Cause, OriginKind
from samebits.recording.notes import Note, NoteCode
from samebits.recording.settings import RecordingSettings
from samebits.verification.series import BudgetSpent

if TYPE_CHECKING:
    from samebits.comparison.results import Comparison, Origins
    from samebits.verification.series import Pair, Series
    from samebits.verification.tools import Tools

MOST_PAIRS = 3
_FEW_STEPS = 3
_FAILED = ("failed", "running")
_LEAD_STEPS = 2  # steps with operations before the step that differed
_KEPT_BYTES = 1 << 26
_SPARE_STEPS = 3  # a race moves: later pairs may go further than the first difference that was seen


@dataclass(frozen=True)
class Localisation:
    """What the pairs showed.

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
    origins: Origins | None
    pairs: int
    first_op_step: int = 0
    max_steps: int | None = None
    failure: str = ""
    too_long: bool = False


def localise(
    series: Series, tools: Tools, comparison: Comparison, role: int, excused: tuple[str, ...] = ()
) -> Localisation:
    """Run pairs at op level until one differs, and follow the difference to where it came in.

    Args:
        series: makes the runs.
        tools: compare them.
        comparison: what the step-level pair said.
        role: which of the compared runs differed from the first.
        excused: names of state tensors that are left out.
    """
    # Without a step that differs one run went on where the other ended: then each pair runs to its end.
    # So they do where several threads make steps: the number of a step is another one in each run.
    ends_differ = comparison.first_step is None or comparison.several_threads
    step = comparison.steps if comparison.first_step is None else comparison.first_step
    start = 0 if step <= _FEW_STEPS or comparison.several_threads else step - _LEAD_STEPS
    last = None if ends_differ else step + 1
    found: Localisation | None = None
    for attempt in range(1, MOST_PAIRS + 1):
        words = "looking for the operation" + (f", attempt {attempt}" if attempt > 1 else "")
        settings = RecordingSettings(
            record="",
            level="op",
            first_op_step=start,
            max_steps=last,
            excused=excused,
            keep_bytes=_KEPT_BYTES,
            keep_from_step=step if start else 0,
        )
        try:
            pair = series.pair(f"op-{attempt}", words, settings, purpose="localise", role=role)
        except BudgetSpent:
            if found is None:
                raise
            return found
        origins = origins_of(pair, tools, excused, until=series.deadline)
        if origins is not None:
            found = Localisation(pair, origins, attempt, start, last)
            if start == 0 or not came_before(origins):
                return found
            start = 0
        elif failed(pair):
            return replace(found or Localisation(None, None, attempt), failure=failed(pair))
        elif attempt == MOST_PAIRS - 1:
            start = 0
        last = None if ends_differ else step + 1 + _SPARE_STEPS
    return found or Localisation(None, None, MOST_PAIRS)


def failed(pair: Pair) -> str:
    """How a run of the pair failed; empty if none did."""
    infos = [run.info for run in (pair.first, pair.second)]
    if None in infos:
        return "a run left no record"
    return next((info.failure or info.status for info in infos if info and info.status in _FAILED), "")


def origins_of(
    pair: Pair,
    tools: Tools,
    excused: tuple[str, ...] = (),
    explained: tuple[tuple[Cause, str, int], ...] = (),
    until: float | None = None,
) -> Origins | None:
    """Where the differences of an op-level pair came in; None when there are none, or a record is missing.

    Args:
        pair: the runs.
        tools: compare them.
        excused: names of state tensors that are left out.
        explained: see `find_origins`.
        until: see `find_origins`.
    """
    if pair.first.info is None or pair.second.info is None:
        return None
    with tools.open_record(pair.first.record) as a, tools.open_record(pair.second.record) as b:
        comparison = tools.judge(a, b, excused)
        if comparison.verdict != "different":
            return None
        return tools.find_origins(a, b, excused, explained, until)


def came_before(origins: Origins) -> bool:
    """Whether a value that differed may have been written before operations were recorded."""
    if not origins.findings:
        return not origins.unread
    return any(finding.entry == OriginKind.OUTSIDE for finding in origins.findings)


def with_origins(comparison: Comparison, found: Localisation) -> Comparison:
    """The verdict of the step-level pair with the findings of the op-level pair."""
    if found.origins is None:
        return replace(comparison, notes=(_why_not_found(found), *comparison.notes))
    notes = (*comparison.notes, *(note for note in found.origins.notes if note not in comparison.notes))
    if found.failure:
        notes = (*notes, Note.of(NoteCode.OPS_FAILED_FROM_START, found.failure))
    if not found.origins.findings:
        return replace(comparison, notes=(*notes, Note.of(NoteCode.NO_OP_BLAMED)))
    return replace(comparison, findings=found.origins.findings, notes=notes)


def _why_not_found(found: Localisation) -> Note:
    if found.too_long:
        return Note.of(NoteCode.OPS_TAKE_TOO_LONG)
    if found.failure:
        return Note.of(NoteCode.OPS_FAILED, found.failure)
    return Note.of(NoteCode.OPS_AGREED, found.pairs)
