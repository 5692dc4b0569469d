"""By how much an origin differs, from what the runs that showed it kept of their first operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.causes import OriginKind
from samebits.verification.amounts import draw_after, with_amount

if TYPE_CHECKING:
    from samebits.comparison.results import Finding
    from samebits.recording.events import Event
    from samebits.verification.series import Pair
    from samebits.verification.tools import OpenRecord, Tools

_KEPT_KINDS = ("op", "batch")


def with_kept_values(finding: Finding, tools: Tools, pair: Pair) -> Finding:
    """The finding with its difference, if both runs kept the tensors; else as it was.

    For a seeding, which has no tensors, those of the first draw after it are taken.

    Args:
        finding: an origin in the records of the pair.
        tools: open records.
        pair: the runs that showed it.
    """
    if finding.difference is not None or finding.entry == OriginKind.CONTROL_FLOW or None in finding.events:
        return finding
    with tools.open_record(pair.first.record) as a, tools.open_record(pair.second.record) as b:
        first, second = _event(a, finding, 0), _event(b, finding, 1)
        if first is None or second is None or first.op != second.op:
            return finding
        return with_amount(finding, a.captures(first.seq), b.captures(second.seq), first)


def _event(record: OpenRecord, finding: Finding, run: int) -> Event | None:
    """The event of the finding in one run."""
    seq = finding.events[run]
    if seq is None:
        return None
    if finding.kind in _KEPT_KINDS:
        return record.event(seq)
    return draw_after(record, record.event(seq)) if finding.kind == "rng" else None
