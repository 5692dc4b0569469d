"""Judges two records: did two runs give the same bits?"""

from __future__ import annotations

import traceback
from dataclasses import replace
from typing import TYPE_CHECKING

from samebits._text.masking import NOT_RECORDED
from samebits._text.secret_names import MASK
from samebits.comparison._sites import place_of
from samebits.comparison._step_findings import reported_findings, step_findings, value_finding
from samebits.comparison._threads import survey_runs
from samebits.comparison.changed_code import on_common_lines
from samebits.comparison.environments import FactDifference, compare_environments
from samebits.comparison.origin import find_origins
from samebits.comparison.reasons import Reason, ReasonCode
from samebits.comparison.results import Comparison
from samebits.errors import SamebitsError
from samebits.records.events import RETURNED, split_command
from samebits.records.kinds import EventKind, Level
from samebits.records.notes import Note, NoteCode, listed, lost_state
from samebits.records.reader import RecordReader

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from samebits.comparison._survey import StepDifference, Survey
    from samebits.comparison.lookup import Record
    from samebits.comparison.results import Finding, Verdict
    from samebits.records.events import RunInfo


def another_command(a: RunInfo, b: RunInfo) -> Reason | None:
    """Return the reason why two records are of different commands; None if they seem to be of one."""
    (script_a, rest_a), (script_b, rest_b) = split_command(a.command), split_command(b.command)
    if script_a != script_b:
        return Reason.of(ReasonCode.OTHER_SCRIPTS, script_a, script_b)
    if rest_a != rest_b and NOT_RECORDED not in (*rest_a, *rest_b):
        return Reason.of(ReasonCode.OTHER_ARGUMENTS, rest_a, rest_b)
    return None


def unseen_arguments(a: RunInfo, b: RunInfo) -> list[Note]:
    """Return a note on arguments that may differ although the commands look equal; empty without any."""
    words = (*a.command, *b.command)
    if NOT_RECORDED in words:
        return [Note.of(NoteCode.ARGUMENTS_NOT_RECORDED)]
    if any(MASK in word for word in words):
        return [Note.of(NoteCode.ARGUMENTS_MASKED)]
    return []


_LISTED = 12  # differences between environments
_OF_TORCH = {("torch", "version"), ("torch", "git"), ("torch", "switches")}  # these facts tell builds apart


def judge(a: Record, b: Record, excluded: Collection[str] = ()) -> Comparison:
    """Compare two records at step level.

    Args:
        a: the first record.
        b: the second.
        excluded: names of state tensors that are left out: memory that nothing wrote or read.

    Returns:
        `identical` if every state digest at every step boundary and every value read or saved is equal;
        `different` if one is not; `not_judged` if the records cannot tell.
    """
    other = another_command(a.info, b.info)
    if other:
        return Comparison("not_judged", other, 0)
    a, b = on_common_lines(a, b)
    result = survey_runs(a, b, excluded)
    reason = _difference(a, b, result)
    unfit = _unfit(a.info, b.info, result)
    notes = _notes(a, b, excluded, result)
    steps = _steps(result)
    if reason is None and unfit is not None:
        return Comparison("not_judged", unfit, steps, notes=notes, final_digest=result.final_digest)
    if reason is None:
        return Comparison(
            "identical", None, steps, notes=notes, final_digest=result.final_digest, state="identical"
        )
    findings = step_findings(a, b, result) or _unmatched_finding(a, b, result)
    state = _state(a.info, b.info, result, unfit)
    reported = reported_findings(a, b, result) if state == "identical" else ()
    if reported:
        reason = Reason.of(ReasonCode.ONLY_REPORTED, len(result.reported), result.has_state)
    doubt = (Note.of(NoteCode.UNFIT, unfit),) if unfit else ()
    return Comparison(
        "different", reason, steps, findings[:1], notes + doubt, result.final_digest,
        step_findings=findings, first_step=result.first.step if result.first else None,
        several_threads=result.several_threads, state=state,
        reported=reported, counts_reads=not (result.trained or result.several_threads),
    )  # fmt: skip


def _state(a: RunInfo, b: RunInfo, result: Survey, unfit: Reason | None) -> Verdict:
    """Judge the state alone, of runs that differ.

    Where there is no state at all, only the values that are read out count.
    """
    if result.first_state is not None or not (result.has_state or result.has_saves):
        return "different"
    if _other_number(a, b, result) is not None:
        return "different"
    return "identical" if unfit is None else "not_judged"


def _difference(a: Record, b: Record, result: Survey) -> Reason | None:
    """Return the reason why the runs differ; None when they do not."""
    if result.first is not None:
        return _first_difference(result)
    numbers = _other_number(a.info, b.info, result)
    if numbers is not None:
        return numbers
    return None if result.has_state else _other_outputs(result)


def _first_difference(result: Survey) -> Reason:
    assert result.first is not None  # noqa: S101 - for the type checker
    step, pairs = result.first.step, result.first.state.pairs
    if pairs:
        tensor = pairs[0].role, pairs[0].name, pairs[0].info
        return Reason.of(ReasonCode.STATE_DIFFERS, step, tensor, len(pairs), result.before)
    later = result.first_state
    saved = later is result.first
    if saved and _is_returned(result.first):
        return Reason.of(ReasonCode.RETURNED_DIFFERS, result.before)
    also = None if later is None or saved else later.step
    trained = result.trained or result.several_threads
    return Reason.of(ReasonCode.VALUE_DIFFERS, step, saved, trained, result.before, also)


def _is_returned(difference: StepDifference) -> bool:
    """Tell whether nothing that was saved differs but what a function returned."""
    return all(op == RETURNED for kind, op, _ in difference.outputs.keys if kind == EventKind.SAVE)


def _other_number(a: RunInfo, b: RunInfo, result: Survey) -> Reason | None:
    """Return a reason if the numbers of steps differ. Only a run that ended by itself tells its number."""
    ours, theirs = result.totals
    if ours == theirs or {a.status, b.status} - {"finished", "stopped"}:
        return None
    fewer = a if ours < theirs else b
    if fewer.status == "stopped":
        return None
    stopped = a.status == "stopped", b.status == "stopped"
    return Reason.of(ReasonCode.OTHER_STEPS, ours, theirs, stopped)


def _other_outputs(result: Survey) -> Reason | None:
    """Return a reason if the values differ of two runs that have no state to compare."""
    for (kind, op, site), (ours, theirs) in result.extra.items():
        if (ours and theirs) or not result.whole_sites:
            return Reason.of(ReasonCode.OTHER_VALUES, kind, op, place_of(site), ours, theirs)
    return None


def _unmatched_finding(a: Record, b: Record, result: Survey) -> tuple[Finding, ...]:
    if result.unmatched is None or result.has_state:
        return ()
    return (value_finding(a, b, *result.unmatched),)


def _unfit(a: RunInfo, b: RunInfo, result: Survey) -> Reason | None:
    """Return the reason why records cannot vouch for two whole runs; None when they can."""
    parts = [part for part in (failure("first", a), failure("second", b)) if part]
    if not parts:
        return _lost_state(a, b)
    n = result.boundaries
    if len(parts) == 2 and a.status == b.status and a.failure == b.failure:
        if a.status == "running":
            return Reason.of(ReasonCode.BOTH_KILLED, n)
        return Reason.of(ReasonCode.BOTH_FAILED, a.failure, n)
    return Reason.of(ReasonCode.NOT_WHOLE, tuple(parts), n)


def _lost_state(a: RunInfo, b: RunInfo) -> Reason | None:
    """Return a reason if a probe failed to record the state, so that equal digests are not enough."""
    lost = [lost_state(info.notes) for info in (a, b)]
    note = lost[0] or lost[1]
    if note is None:
        return None
    which = "both" if all(lost) else "first" if lost[0] else "second"
    part, error, _ = note.arguments
    return Reason.of(ReasonCode.STATE_NOT_RECORDED, which, part, error)


def failure(which: str, info: RunInfo) -> Reason | None:
    """Say why a run did not come to its end; None if it did, or was stopped as it was asked for.

    Args:
        which: `first` or `second`.
        info: of the run.
    """
    if info.status == "failed":
        return Reason.of(ReasonCode.RUN_FAILED, which, info.exit_status, info.failure)
    if info.status == "running":
        return Reason.of(ReasonCode.RUN_NEVER_ENDED, which, info.failure)
    return None


def _steps(result: Survey) -> int:
    """Count the boundaries that were compared; in a script that only reads, each read is one."""
    return result.boundaries if result.boundaries or result.has_state else result.reads


def _notes(a: Record, b: Record, excluded: Collection[str], result: Survey) -> tuple[Note, ...]:
    notes: list[Note] = []
    if excluded:
        notes.append(Note.of(NoteCode.EXCLUDED, *sorted(excluded)))
    for (kind, op, site), counts in result.extra.items():
        notes.append(Note.of(NoteCode.ONE_SIDED_VALUES, kind, op, place_of(site), *counts))
    notes += _by_chance(result)
    if result.first is None:
        lines = result.generators.lines(used_only=True)
        notes += [Note.of(NoteCode.GENERATOR_DIFFERED, line) for line in lines]
        notes += [Note.of(NoteCode.EARLY_DIFFERENCE, kind, step) for kind, step in result.early.items()]
    notes += unseen_arguments(a.info, b.info)
    notes += _environment(a.info, b.info)
    return tuple(notes + listed([*a.info.notes, *b.info.notes]))


def _by_chance(result: Survey) -> list[Note]:
    """Return notes on differences in the state that do not make it another state."""
    moved = [] if result.moved is None else [Note.of(NoteCode.STATE_MOVED, *result.moved)]
    retained = [] if result.lone is None else [Note.of(NoteCode.STATE_KEPT_LONGER, *result.lone)]
    return moved + retained


def _environment(a: RunInfo, b: RunInfo) -> list[Note]:
    compared = compare_environments(a, b)
    facts = [difference.fact for difference in compared.differences]
    if a.torch and b.torch and a.torch != b.torch and not any(fact.path in _OF_TORCH for fact in facts):
        facts.insert(0, FactDifference(("torch", "version"), a.torch, b.torch))
    notes = [Note.of(NoteCode.ENVIRONMENT, fact) for fact in facts[:_LISTED]]
    rest, unknown = len(facts) - _LISTED, compared.unknown
    notes += [Note.of(NoteCode.MORE_OF_ENVIRONMENT, rest)] if rest > 0 else []
    if unknown.files:
        number = len(unknown.files) + unknown.unlisted
        notes.append(Note.of(NoteCode.DATA_NOT_COMPARED, number, unknown.files[0].name))
    return notes


def compare_records(a: str | Path, b: str | Path) -> Comparison:
    """Compare two records of the same script: the verdict, and the origin of a difference.

    The origin is an operation when both records are of level `op`, else the first event that differed.

    Args:
        a: path of the first record.
        b: path of the second.

    Raises:
        SamebitsError: a file is missing, is no record, or is damaged.
    """
    with RecordReader(a) as first, RecordReader(b) as second:
        return compare(first, second)


def compare(a: Record, b: Record) -> Comparison:
    """Compare two open records.

    State that differs only in memory that nothing wrote or read is excluded, with a note.
    """
    a, b = on_common_lines(a, b)
    result = judge(a, b)
    if result.verdict != "different" or a.info.level != Level.OP or b.info.level != Level.OP:
        return result
    try:
        return _explained(a, b, result)
    except SamebitsError:
        raise
    except Exception:  # noqa: BLE001 - a bug of ours: the verdict stands
        return replace(result, failure=traceback.format_exc())


def _explained(a: Record, b: Record, result: Comparison) -> Comparison:
    """Add the origins of a difference between two op-level records to the verdict."""
    excluded: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    origins = find_origins(a, b)
    while origins.unread and not set(origins.unread) <= set(excluded):
        excluded, notes = (*excluded, *origins.unread), notes + origins.notes
        result = judge(a, b, excluded)
        if result.verdict != "different":
            return replace(result, notes=notes + result.notes)
        origins = find_origins(a, b, excluded)
    findings = origins.findings or result.findings
    return replace(result, findings=findings, notes=notes + origins.notes + result.notes)
