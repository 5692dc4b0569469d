"""By how much an origin differs, from what the runs that showed it kept of their first operations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.comparison.difference import captured_difference
from samebits.comparison.results import descriptions, place

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
    if finding.difference is not None or finding.entry == "control-flow" or None in finding.events:
        return finding
    with tools.open_record(pair.first.record) as a, tools.open_record(pair.second.record) as b:
        first, second = _event(a, finding, 0), _event(b, finding, 1)
        if first is None or second is None or first.op != second.op:
            return finding
        kept = a.captures(first.seq)
        chosen = kept.keys() & set(finding.positions) or kept.keys()
        difference = captured_difference({at: kept[at] for at in chosen}, b.captures(second.seq))
    if difference is None or not difference.elements:
        return finding
    if finding.kind == first.kind:
        return replace(finding, difference=difference)
    line = f"the first draw after it: {first.op} at {place(first.site)}"
    outputs = descriptions(first, "out")
    return replace(finding, difference=difference, outputs=outputs, evidence=(*finding.evidence, line))


def _event(record: OpenRecord, finding: Finding, run: int) -> Event | None:
    """The event of the finding in one run."""
    seq = finding.events[run]
    if seq is None:
        return None
    if finding.kind in _KEPT_KINDS:
        return record.event(seq)
    if finding.kind != "rng":
        return None
    later = (event for event in record.events(("op",), finding.step) if event.seq > seq)
    return next((event for event in later if any(info.role == "rng" for info in event.tensors)), None)
