"""Runs with every operation recorded, to name the one at which the bits part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.commands.lock.entry import agree, rows_of
from samebits.commands.lock.recipe import run_operations
from samebits.errors import SamebitsError
from samebits.verification import verify_records, with_kept_values

if TYPE_CHECKING:
    from samebits.commands.lock.case import Case
    from samebits.commands.lock.recipe import Recipe
    from samebits.verification import Verification

_LEAD = 2  # steps with their operations before the one that differs


def compared(case: Case, first: Recipe, second: Recipe) -> Verification | None:
    """Run two recipes and return where their operations part; None if that shows nothing.

    Args:
        case: which step differs.
        first: gives the bits of the lock.
        second: gives others.
    """
    case.announce("the operation at which the bits part")
    last = case.last_step
    for start in dict.fromkeys((max(0, (last or 0) - _LEAD), 0)):
        made = [
            run_operations(each, f"operations-{i}", first=start) for i, each in enumerate((first, second))
        ]
        if any(each.failed for each in made):
            return None
        result = with_kept_values(verify_records(made[0].record, made[1].record))
        if result.comparison.verdict == "different" and result.comparison.findings:
            return result
    return None


def traced(case: Case, recipe: Recipe) -> Verification | None:
    """Compare with the record beside the lock, which holds the operations of its first steps.

    Args:
        case: which step differs.
        recipe: of the code that the lock was made with.

    Returns:
        None if there is no such record, it ends before the step that differs, it does not have the bits of
        the lock, or it shows nothing.
    """
    trace = case.lock.trace(case.entry.name)
    last = case.last_step
    if not case.entry.trace or not trace.is_file() or (last is not None and last >= case.entry.trace):
        return None
    try:
        is_of_entry = agree(case.entry.rows, rows_of(str(trace)))
    except SamebitsError:  # said below, when it is compared
        is_of_entry = True
    if not is_of_entry:
        case.announce("no operation is named: the record beside the lock is not of the run that was locked")
        return None
    case.announce("the operation at which the bits part from those of the other machine")
    made = run_operations(replace(recipe, max_steps=case.entry.trace), "trace")
    if made.failed:
        return None
    try:
        result = with_kept_values(verify_records(str(trace), made.record))
    except SamebitsError as error:  # the record beside the lock is damaged, or of another version
        case.announce(f"no operation is named, because of the record beside the lock: {error}")
        return None
    return result if result.comparison.verdict == "different" and result.comparison.findings else None
