"""The verdict: did two runs give the same bits?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.comparison.commands import another_command, unseen_arguments
from samebits.comparison.results import Comparison
from samebits.comparison.step_findings import reported_findings, step_findings, value_finding
from samebits.comparison.threads import survey_runs
from samebits.environment import bit_relevant_differences
from samebits.recording.guard import lost_state

if TYPE_CHECKING:
    from collections.abc import Collection

    from samebits.comparison.results import Finding, Verdict
    from samebits.comparison.sources import Record
    from samebits.comparison.survey import Survey
    from samebits.comparison.tables import Key
    from samebits.recording.events import RunInfo

_NAMED = 5  # names in one line
_UNTRAINED = " (the script trains nothing: each value that it reads out is a step)"
_LISTED = 12  # differences between environments


def judge(a: Record, b: Record, excused: Collection[str] = ()) -> Comparison:
    """Compare two records at step level.

    Args:
        a: the first record.
        b: the second.
        excused: names of state tensors that are left out: memory that nothing wrote and nothing read.

    Returns:
        `identical` if every state digest at every step boundary and every value read or saved is equal;
        `different` if one is not; `not_judged` if the records cannot tell.
    """
    other = another_command(a.info, b.info)
    if other:
        return Comparison("not_judged", other, 0)
    result = survey_runs(a, b, excused)
    reason = _difference(a, b, result)
    unfit = _unfit(a.info, b.info, result)
    notes = _notes(a, b, excused, result)
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
        reason = only_reported(len(result.reported), trained=result.has_state)
    return Comparison(
        "different", reason, steps, findings[:1], notes + ((unfit,) if unfit else ()), result.final_digest,
        step_findings=findings, first_step=result.first.step if result.first else None,
        differing_steps=result.differing, several_threads=result.several_threads, state=state,
        reported=reported, counts_reads=not (result.trained or result.several_threads),
    )  # fmt: skip


def _state(a: RunInfo, b: RunInfo, result: Survey, unfit: str | None) -> Verdict:
    """The verdict over the state alone, of runs that differ.

    Where there is no state at all, the values that are read out are all there is.
    """
    if result.first_state is not None or not (result.has_state or result.has_saves):
        return "different"
    if _other_number(a, b, result) is not None:
        return "different"
    return "identical" if unfit is None else "not_judged"


def only_reported(number: int, *, trained: bool) -> str:
    """The headline where only values that are read out differ.

    Args:
        number: of these values.
        trained: whether there is a training; else there are only saved values.
    """
    what = "the training is identical at every step" if trained else "what is saved is identical"
    return f"{what}; {number} reported value{' differs' if number == 1 else 's differ'}"


def _difference(a: Record, b: Record, result: Survey) -> str | None:
    """Why the runs differ; None when nothing does."""
    if result.first is not None:
        return _first_difference(result)
    numbers = _other_number(a.info, b.info, result)
    if numbers is not None:
        return numbers
    return None if result.has_state else _other_outputs(result)


def _first_difference(result: Survey) -> str:
    assert result.first is not None  # noqa: S101 - for the type checker
    step, pairs = result.first.step, result.first.state.pairs
    n = result.before
    before = (
        "" if n == 0 else f"; the {n} steps before it are identical" if n > 1 else "; step 0 is identical"
    )
    if pairs:
        more = f" and {len(pairs) - 1} more" if len(pairs) > 1 else ""
        return f"the state differs at step {step}: {pairs[0].text()}{more}{before}"
    later = result.first_state
    also = "" if later is None or later is result.first else f"; the state differs from step {later.step} on"
    saved = later is result.first
    untrained = "" if result.trained or result.several_threads else _UNTRAINED
    return f"a value that was {'saved' if saved else 'read'} differs at step {step}{untrained}{before}{also}"


def _other_number(a: RunInfo, b: RunInfo, result: Survey) -> str | None:
    """Why the number of steps makes the runs different: only a run that ended by itself tells its number."""
    ours, theirs = result.totals
    if ours == theirs or {a.status, b.status} - {"finished", "stopped"}:
        return None
    fewer = a if ours < theirs else b
    if fewer.status == "stopped":
        return None
    least = ["at least " if info.status == "stopped" else "" for info in (a, b)]
    n = min(ours, theirs)
    same = "" if n == 0 else "; the first is identical" if n == 1 else f"; the first {n} are identical"
    return f"the runs made different numbers of steps, {least[0]}{ours} and {least[1]}{theirs}{same}"


def _other_outputs(result: Survey) -> str | None:
    """Why two runs without any state differ: there the values that they gave are all there is to compare."""
    for key, (ours, theirs) in result.extra.items():
        if (ours and theirs) or not result.whole_sites:
            only = f"{ours} only in the first run, {theirs} only in the second"
            return f"the runs gave different values at {_where(key)}: {only}"
    return None


def _unmatched_finding(a: Record, b: Record, result: Survey) -> tuple[Finding, ...]:
    if result.unmatched is None or result.has_state:
        return ()
    return (value_finding(a, b, *result.unmatched),)


def _unfit(a: RunInfo, b: RunInfo, result: Survey) -> str | None:
    """Why records cannot vouch for two whole runs; None when they can."""
    parts = [part for part in (_ending("first", a), _ending("second", b)) if part]
    if not parts:
        return _lost_state(a, b)
    n = result.boundaries
    compared = f"{n} step{'' if n == 1 else 's'} of both could be compared"
    if len(parts) == 2 and a.status == b.status and a.failure == b.failure:
        how = (
            "were killed or are still running"
            if a.status == "running"
            else f"failed: {a.failure or 'no reason known'}"
        )
        return f"both runs {how}; {compared}"
    return f"{'; '.join(parts)}; {compared}"


def _lost_state(a: RunInfo, b: RunInfo) -> str | None:
    """Why equal digests are not enough: a probe failed while it recorded the state; None if none did."""
    lost = [lost_state(info.notes) for info in (a, b)]
    if not any(lost):
        return None
    which = "both runs" if all(lost) else "the first run" if lost[0] else "the second run"
    return f"the state could not be recorded in {which}: {lost[0] or lost[1]}"


def _ending(which: str, info: RunInfo) -> str:
    if info.status == "failed":
        status = "" if info.exit_status is None else f" with status {info.exit_status}"
        return f"the {which} run failed{status}" + (f" ({info.failure})" if info.failure else "")
    if info.status == "running":
        return f"the {which} run never ended its record" + (f" ({info.failure})" if info.failure else "")
    return ""


def _steps(result: Survey) -> int:
    """How many boundaries were compared; in a script that only reads, each read is one."""
    return result.boundaries if result.boundaries or result.has_state else result.reads


def _notes(a: Record, b: Record, excused: Collection[str], result: Survey) -> tuple[str, ...]:
    notes: list[str] = []
    if excused:
        names = sorted(excused)
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        notes.append(f"left out of the comparison: {', '.join(names[:_NAMED])}{more}")
    for key, (ours, theirs) in result.extra.items():
        notes.append(
            f"{_where(key)} gave values that only one run has: {ours} in the first, {theirs} in the second"
        )
    notes += _by_chance(result)
    if result.first is None:
        notes += [
            f"{line}; nothing that was compared differs" for line in result.generators.lines(used_only=True)
        ]
        notes += [f"the {kind} differed at step {step}, but not the state or an output"
                  for kind, step in result.early.items()]  # fmt: skip
    notes += unseen_arguments(a.info, b.info)
    notes += _environment(a.info, b.info)
    return tuple(notes + sorted({*a.info.notes, *b.info.notes}))


def _by_chance(result: Survey) -> list[str]:
    """What differs in the state without being another state."""
    notes = []
    if result.moved is not None:
        step, n = result.moved
        notes.append(
            f"from step {step} on the same values come in another order: {n} state tensors have other names"
        )
    if result.lone is not None:
        step, n = result.lone
        notes.append(
            f"from step {step} on only one run still holds {n} tensor{'' if n == 1 else 's'} of models that "
            "take no part any more: when they are freed is up to Python's garbage collector"
        )
    return notes


def _environment(a: RunInfo, b: RunInfo) -> list[str]:
    stopped = a.status != b.status and "stopped" in {a.status, b.status}
    lines = bit_relevant_differences(a.environment, b.environment, one_was_stopped=stopped)
    if a.torch and b.torch and a.torch != b.torch and not any(line.startswith("torch") for line in lines):
        lines.insert(0, f"torch version: {a.torch} and {b.torch}")
    more = [f"{len(lines) - _LISTED} further differences"] if len(lines) > _LISTED else []
    return [f"the environments differ: {line}" for line in [*lines[:_LISTED], *more]]


def _where(key: Key) -> str:
    kind, op, site = key
    at = f" at {site[0]}:{site[1]}" if site else ""
    return f"the {kind} `{op}`{at}"
