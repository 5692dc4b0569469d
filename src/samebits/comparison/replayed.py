"""What executing ops again showed, as findings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samebits._text.str_enum import StrEnum
from samebits.causes import Cause, OriginKind
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.results import Comparison, Diagnosis, Finding, Origin, Remedy, shortened
from samebits.determinism.deterministic_ops import remedy_for
from samebits.records.kinds import EventKind

if TYPE_CHECKING:
    from samebits.recording.replay_results import ReplaySummary, Unrepeated


class Rerun(StrEnum):
    """The kind of an origin that no event of a comparison shows."""

    REPLAY = "replay"
    """An op gave other bits when it was executed again."""


@dataclass(frozen=True)
class Replayed:
    """Ops of one run that were executed again.

    Args:
        summary: counts.
        findings: the ops that did not repeat; their kind is `replay`.
    """

    summary: ReplaySummary
    findings: tuple[Finding, ...]


def replayed(summary: ReplaySummary) -> Replayed:
    """The findings that a replay gives."""
    return Replayed(summary, tuple(_finding(found, summary.times) for found in summary.unrepeated))


def with_evidence(comparison: Comparison, found: Replayed) -> Comparison:
    """The comparison with what the replay says of its origins."""
    by_place = {(item.op, item.site): item for item in found.summary.unrepeated}
    findings = []
    for finding in comparison.findings:
        item = by_place.get((finding.origin.op or "", finding.origin.site))
        origin = finding.origin
        if item is not None and origin.kind == EventKind.OP and origin.entry == OriginKind.KERNEL:
            findings.append(finding.with_evidence(_evidence(item)))
        else:
            findings.append(finding)
    return replace(comparison, findings=tuple(findings), replayed=found)


def _finding(found: Unrepeated, times: int) -> Finding:
    evidence = [_evidence(found)]
    if found.only_generator:
        evidence.append(Evidence.of(EvidenceCode.ONLY_GENERATOR))
    if not found.op.startswith("aten::"):
        evidence.append(Evidence.of(EvidenceCode.NOT_OF_TORCH))
    if times == 1 and found.differing < found.calls:
        evidence.append(Evidence.of(EvidenceCode.REPEAT_MORE))
    text = remedy_for(found.op, found.device)
    origin = Origin(
        kind=Rerun.REPLAY,
        step=found.step,
        op=found.op,
        module=found.module or None,
        site=found.site,
        forward_site=found.forward_site,
        inputs_equal=True,
        difference=found.difference,
        entry=OriginKind.KERNEL,
        inputs=tuple(map(shortened, found.inputs)),
        outputs=tuple(map(shortened, found.outputs)),
    )
    diagnosis = Diagnosis(Cause.NONDETERMINISTIC_KERNEL, tuple(evidence))
    return Finding(origin, diagnosis, Remedy(text) if text else None)


def _evidence(found: Unrepeated) -> Evidence:
    counts = found.differing, found.repetitions, found.calls
    return Evidence.of(EvidenceCode.NOT_REPEATED, *counts, found.site)
