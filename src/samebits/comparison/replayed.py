"""Findings about ops that were executed again."""

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
    """Make the findings of a replay."""
    return Replayed(summary, tuple(_finding(op, summary.times) for op in summary.unrepeated))


def with_evidence(comparison: Comparison, replay: Replayed) -> Comparison:
    """Add the evidence of a replay to the origins of a comparison."""
    by_op_and_site = {(item.op, item.site): item for item in replay.summary.unrepeated}
    findings = []
    for finding in comparison.findings:
        item = by_op_and_site.get((finding.origin.op or "", finding.origin.site))
        origin = finding.origin
        if item is not None and origin.kind == EventKind.OP and origin.origin_kind == OriginKind.KERNEL:
            findings.append(finding.with_evidence(_evidence(item)))
        else:
            findings.append(finding)
    return replace(comparison, findings=tuple(findings), replayed=replay)


def _finding(unrepeated: Unrepeated, times: int) -> Finding:
    evidence = [_evidence(unrepeated)]
    if unrepeated.only_generator:
        evidence.append(Evidence.of(EvidenceCode.ONLY_GENERATOR))
    if not unrepeated.op.startswith("aten::"):
        evidence.append(Evidence.of(EvidenceCode.NOT_OF_TORCH))
    if times == 1 and unrepeated.differing < unrepeated.calls:
        evidence.append(Evidence.of(EvidenceCode.REPEAT_MORE))
    text = remedy_for(unrepeated.op, unrepeated.device)
    origin = Origin(
        kind=Rerun.REPLAY,
        step=unrepeated.step,
        op=unrepeated.op,
        module=unrepeated.module or None,
        site=unrepeated.site,
        forward_site=unrepeated.forward_site,
        inputs_equal=True,
        difference=unrepeated.difference,
        origin_kind=OriginKind.KERNEL,
        inputs=tuple(map(shortened, unrepeated.inputs)),
        outputs=tuple(map(shortened, unrepeated.outputs)),
    )
    diagnosis = Diagnosis(Cause.NONDETERMINISTIC_KERNEL, tuple(evidence))
    return Finding(origin, diagnosis, Remedy(text) if text else None)


def _evidence(unrepeated: Unrepeated) -> Evidence:
    counts = unrepeated.differing, unrepeated.repetitions, unrepeated.calls
    return Evidence.of(EvidenceCode.NOT_REPEATED, *counts, unrepeated.site)
