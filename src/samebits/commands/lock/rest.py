"""Says whether the platform, or what no lock holds, gives other bits, once code and settings were tried.

That two platforms differ does not show that this changed the bits. An operation that computed other bits from
the same ones shows it. One that brings values in from outside does not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.causes import OriginKind
from samebits.commands.lock.outcome import Beginning, Blame, OldCode, Proof
from samebits.commands.lock.settings import settings_of_lock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.commands.lock.outcome import EntryResult
    from samebits.comparison.environments import EnvironmentDifference
    from samebits.comparison.results import Finding

_TORCH = ("torch", "version"), ("torch", "git")
_PYTHON = ("python", "version"), ("python", "implementation")
_TABLES = ("packages", "distributions", "libraries")
_WITH_CHANGE = {Blame.PLATFORM: Blame.BOTH, Blame.UNRECORDED: Blame.CHANGE_AND_UNRECORDED}


def with_rest(result: EntryResult) -> EntryResult:
    """Blame the platform where that is shown, and what no lock holds where the platform cannot be it.

    Args:
        result: of code and data as in the lock, or with what the old code gave. The settings of the lock that
            can be given back were, and did not give its bits.
    """
    left = tuple(each for each in result.platform if not _is_tried(each, result))
    finding = result.finding
    begins = None if finding is None else _beginning(finding, left)
    blame = _blame(finding, begins, left)
    shown = result.old_code is not None or bool(blame is Blame.UNRECORDED and result.tried and not left)
    proof = Proof.TRIED if shown and blame is not Blame.UNDECIDED else Proof.INFERRED
    return replace(result, blame=with_change(blame, result.old_code), proof=proof, begins=begins)


def with_change(blame: Blame, old_code: OldCode | None) -> Blame:
    """Return the blame where the code was changed too, and gives other bits since."""
    return _WITH_CHANGE.get(blame, blame) if old_code is OldCode.OTHERS else blame


def _is_tried(difference: EnvironmentDifference, result: EntryResult) -> bool:
    """Tell whether a difference was taken away: settings alone make it, and those of the lock were given."""
    alone = replace(difference, follows=())
    needed = settings_of_lock(result.entry.environment, (alone,))
    return bool(needed) and set(needed) <= set(result.tried)


def _blame(
    finding: Finding | None, begins: Beginning | None, left: tuple[EnvironmentDifference, ...]
) -> Blame:
    if not left:
        return Blame.UNRECORDED
    if begins is Beginning.COMPUTED:
        return Blame.PLATFORM
    is_value = finding is not None and finding.origin.origin_kind in (OriginKind.OUTSIDE, OriginKind.KERNEL)
    if begins is Beginning.ENTERED and not _gives_values(left, by_torch=not is_value):
        return Blame.UNRECORDED
    return Blame.UNDECIDED


def _beginning(finding: Finding, left: tuple[EnvironmentDifference, ...]) -> Beginning:
    """Say how the bits part at the first operation that differs."""
    origin = finding.origin
    if origin.origin_kind is OriginKind.KERNEL:
        # One that is not torch's and takes no tensor may read a file.
        computes = origin.inputs_equal or str(origin.op).startswith("aten::")
        return Beginning.COMPUTED if computes else Beginning.ENTERED
    if _calls_another(finding) and _gives_values(left, by_torch=True):
        return Beginning.COMPUTED  # by other software: releases compute one formula with other operations
    return Beginning.ENTERED if finding.enters else Beginning.OPEN


def _calls_another(finding: Finding) -> bool:
    """Tell whether one line called another operation in each run."""
    origin = finding.origin
    is_pair = origin.other_op is not None and None not in origin.events
    return origin.origin_kind is OriginKind.CONTROL_FLOW and is_pair and origin.other_site is None


def _gives_values(differences: Iterable[EnvironmentDifference], *, by_torch: bool) -> bool:
    """Tell whether software or the machine can make values other ones that no operation makes.

    Args:
        differences: of the platform.
        by_torch: whether those that torch's own Python code makes count.
    """
    return any(_makes_values(each, by_torch=by_torch) for each in differences)


def _makes_values(difference: EnvironmentDifference, *, by_torch: bool) -> bool:
    fact = difference.fact
    if fact.path in _TORCH or (fact.path[0] in _TABLES and fact.entry == "torch"):
        return by_torch
    if fact.path[0] in _TABLES:  # what only one run has, torch or samebits loaded there
        return None not in (fact.first, fact.second)
    return fact.path in _PYTHON or fact.path[0] == "machine"
