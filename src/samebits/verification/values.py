"""By how much: the tensors of an origin, fetched by one more pair of runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samebits.comparison.align import occurrence
from samebits.comparison.difference import captured_difference
from samebits.comparison.results import descriptions, place
from samebits.recording.settings import CaptureSpec, RecordingSettings

if TYPE_CHECKING:
    from samebits.comparison.results import Finding
    from samebits.recording.distance import Difference
    from samebits.recording.events import Event
    from samebits.verification.series import Pair, Series
    from samebits.verification.tools import OpenRecord, Tools

MOST_PAIRS = 3
_CAPTURED_KINDS = ("op", "batch", "loss", "read", "save")
NOT_CAPTURED = (
    f"the values could not be fetched: in {MOST_PAIRS} more pairs of runs the operation gave the same bits, "
    "or was not reached in the same way"
)


@dataclass(frozen=True)
class Measurement:
    """What is to be measured.

    Args:
        finding: the origin.
        pair: the runs that showed it.
        first_op_step: from which step those recorded operations.
        role: which of the compared runs differed from the first.
    """

    finding: Finding
    pair: Pair
    first_op_step: int
    role: int


def measure(series: Series, tools: Tools, wanted: Measurement) -> tuple[Finding, str]:
    """Run pairs that keep the tensors of an origin until they differ.

    Args:
        series: makes the runs.
        tools: open records.
        wanted: what is to be measured.

    Returns:
        the finding with its difference, and a note if that could not be had.
    """
    finding = wanted.finding
    event, settings = _plan(tools, wanted)
    if event is None or settings is None or settings.capture is None:
        return finding, ""
    for attempt in range(1, MOST_PAIRS + 1):
        words = "fetching the values" + (f", attempt {attempt}" if attempt > 1 else "")
        captured = series.pair(f"values-{attempt}", words, settings, purpose="capture", role=wanted.role)
        difference = _difference(tools, captured, settings.capture, finding)
        if difference is not None:
            return _with_difference(finding, difference, event), ""
    return finding, NOT_CAPTURED


def _with_difference(finding: Finding, difference: Difference, event: Event) -> Finding:
    if finding.kind == event.kind:
        return replace(finding, difference=difference)
    line = f"the first draw after it: {event.op} at {place(event.site)}"
    outputs = descriptions(event, "out")
    return replace(finding, difference=difference, outputs=outputs, evidence=(*finding.evidence, line))


def _plan(tools: Tools, wanted: Measurement) -> tuple[Event | None, RecordingSettings | None]:
    """Whose tensors are fetched, and how; nothing where one event is not the place to look."""
    finding, pair = wanted.finding, wanted.pair
    with tools.open_record(pair.first.record) as record:
        event = _event(record, finding)
        if event is None:
            return None, None
        count = occurrence(record, event)
    file, line = (event.site.file, event.site.line) if event.site is not None else ("", 0)
    spec = CaptureSpec(event.step, event.kind, event.op, file, line, count)
    level = pair.first.info.level if pair.first.info is not None else "op"
    return event, RecordingSettings(
        record="", level=level, first_op_step=wanted.first_op_step, max_steps=event.step + 1, capture=spec
    )


def _event(record: OpenRecord, finding: Finding) -> Event | None:
    """The event of the finding; for a seeding, which has no tensors, the first draw after it."""
    seq = finding.events[0]
    if seq is None or finding.events[1] is None or finding.entry == "control-flow":
        return None  # the runs did different things there: no two values to compare
    if finding.kind in _CAPTURED_KINDS:
        return record.event(seq)
    if finding.kind != "rng":
        return None
    later = (event for event in record.events(("op",), finding.step) if event.seq > seq)
    return next((event for event in later if any(info.role == "rng" for info in event.tensors)), None)


def _difference(tools: Tools, pair: Pair, spec: CaptureSpec, finding: Finding) -> Difference | None:
    """How far the tensors of the two runs are apart; None when they are not."""
    with tools.open_record(pair.first.record) as a, tools.open_record(pair.second.record) as b:
        first, second = _captured(a, spec), _captured(b, spec)
    kept = first.keys() & set(finding.positions) or first.keys()
    difference = captured_difference({position: first[position] for position in kept}, second)
    return difference if difference is not None and difference.elements else None


def _captured(record: OpenRecord, spec: CaptureSpec) -> dict[int, bytes]:
    """What a run captured: there is one event that has it."""
    for event in record.events((spec.kind,), spec.step, spec.step):
        place = (event.site.file, event.site.line) if event.site is not None else ("", 0)
        if event.op == spec.op and place == (spec.file, spec.line):
            found = record.captures(event.seq)
            if found:
                return found
    return {}
