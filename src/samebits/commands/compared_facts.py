"""What a page on two runs shows beyond the verdict: read from their records once, as frozen values."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.comparison.difference import ElementPair, captured_elements
from samebits.comparison.environments import EnvironmentComparison, compare_environments
from samebits.comparison.growth import Growth, growth
from samebits.comparison.op_timeline import OpTimeline, complex_positions, op_timeline
from samebits.comparison.timeline import timeline
from samebits.recording.naming import child_record
from samebits.records.kinds import EventKind, Role
from samebits.records.notes import NoteCode
from samebits.records.reader import RecordReader

if TYPE_CHECKING:
    from collections.abc import Collection

    from samebits.comparison.results import Comparison, Finding
    from samebits.comparison.step_chart import StepChart
    from samebits.records.events import RunInfo
    from samebits.verification.results import Verification

_MOST_ELEMENTS = 12


@dataclass(frozen=True)
class ComparedFacts:
    """Two runs beyond their verdict.

    Args:
        infos: the facts of each run.
        names: paths of their records.
        chart: what differs, by module and step; None where the steps cannot be paired.
        ops: the operations from the step on in which the runs part; None without operations.
        elements: the first elements that differ at the first origin, where both runs captured them.
        environment: the differences between the environments.
        growth: how far apart the runs are in each step, where both records keep the values.
    """

    infos: tuple[RunInfo, RunInfo]
    names: tuple[str, str]
    chart: StepChart | None
    ops: OpTimeline | None
    elements: tuple[ElementPair, ...]
    environment: EnvironmentComparison
    growth: Growth | None = None


def compared_facts(result: Verification) -> ComparedFacts | None:
    """Read what the records of a verification hold beyond its verdict.

    Args:
        result: of a verification whose records are still there.

    Returns:
        None where two runs were not compared.

    Raises:
        SamebitsError: a record cannot be read.
    """
    runs = [run for run in result.compared if run.info is not None]
    if len(runs) < 2:
        return None
    names = runs[0].record, runs[-1].record
    comparison = result.comparison
    with ExitStack() as stack:
        a, b = (stack.enter_context(RecordReader(_examined(name, comparison))) for name in names)
        excluded = _excluded(comparison)
        known = comparison.reason is None or comparison.verdict != "not_judged"
        pair = _op_pair(result, (a, b), stack)
        first = comparison.findings[0] if comparison.findings else None
        return ComparedFacts(
            infos=(a.info, b.info),
            names=names,
            chart=timeline(a, b, excluded) if known else None,
            ops=op_timeline(*pair, excluded, _origins(comparison)) if pair and known else None,
            elements=_elements(first, *pair) if pair and first is not None else (),
            environment=compare_environments(a.info, b.info),
            growth=growth(a, b, excluded) if known and comparison.verdict == "different" else None,
        )


def _examined(record: str, comparison: Comparison) -> str:
    """Return the record that the verdict is about: that of a child process, where such a one differs."""
    return child_record(record, comparison.child) if comparison.child else record


def _excluded(comparison: Comparison) -> Collection[str]:
    """Return the names of the state tensors that the verdict leaves out."""
    return [name for note in comparison.notes if note.code is NoteCode.EXCLUDED for name in note.arguments]


def _op_pair(
    result: Verification, compared: tuple[RecordReader, RecordReader], stack: ExitStack
) -> tuple[RecordReader, RecordReader] | None:
    """Return the records in which the origins were found; None where nothing differs."""
    if result.comparison.verdict != "different":
        return None
    if not result.op_records:
        return compared
    a, b = (stack.enter_context(RecordReader(name)) for name in result.op_records)
    return a, b


def _origins(comparison: Comparison) -> list[int]:
    """Return the numbers of the events of the first run that are origins."""
    return [
        finding.origin.events[0] for finding in comparison.findings if finding.origin.events[0] is not None
    ]


def _elements(finding: Finding, a: RecordReader, b: RecordReader) -> tuple[ElementPair, ...]:
    """Return the first elements that differ at an origin."""
    ours, theirs = finding.origin.events
    if ours is None or theirs is None or finding.origin.kind not in (EventKind.OP, EventKind.BATCH):
        return ()
    if ours not in a.captured() or theirs not in b.captured():
        return ()
    first, second = a.event(ours), b.event(theirs)
    if (first.op, second.op) != (finding.origin.op, finding.origin.op):
        return ()
    shown = {at for at, info in enumerate(first.tensors) if info.role != Role.RNG}
    values = [
        {at: data for at, data in record.captures(seq).items() if at in shown}
        for record, seq in ((a, ours), (b, theirs))
    ]
    return captured_elements(values[0], values[1], complex_positions(first), _MOST_ELEMENTS)
