"""Findings about the first step with a difference: all that a step-level record can tell."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from samebits.causes import cause_of_draw, specification_of
from samebits.comparison._sites import same_line
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.results import Diagnosis, Finding, Origin, describe, values_of
from samebits.records.kinds import EventKind
from samebits.rng.sources import TORCH

if TYPE_CHECKING:
    from samebits._runtime.frames import Site
    from samebits.comparison._survey import StepDifference, Survey
    from samebits.comparison.lookup import Record
    from samebits.comparison.states import TensorPair
    from samebits.records.events import Event

_MOST_DRAWS = 10_000


def step_findings(a: Record, b: Record, survey: Survey) -> tuple[Finding, ...]:
    """Make a finding for each event that differed in the first step with a difference, in order.

    Args:
        a: the first record.
        b: the second.
        survey: the comparison of both, step by step.
    """
    first_step = survey.first
    if first_step is None:
        return ()
    used = _drawn_from(a, first_step.a.last) | {TORCH.name}  # every model is initialised from it
    lines = _earlier(survey, first_step) + survey.generators.lines(used_only=True, used=used)
    by_event = _by_event(first_step)
    findings = [_of_state(pairs, first_step.step) for pairs in by_event]
    for seq_a, seq_b in [*first_step.evidence.differing, *first_step.outputs.differing]:
        findings.append(value_finding(a, b, seq_a, seq_b))
    if not (first_step.a.hard or survey.several_threads):  # such a record does not number what it reads
        findings = [replace(each, origin=replace(each.origin, step=first_step.step)) for each in findings]
    findings.sort(key=lambda each: _position(each.origin))
    first, *others = findings
    return (first.with_evidence(*lines), *others)


def _drawn_from(record: Record, last_step: int) -> set[str]:
    """Return the libraries from whose global generators the script drew."""
    drawn = islice(record.events((EventKind.DRAW,), last_step=last_step), _MOST_DRAWS)
    libraries = {specification_of(cause_of_draw(event.op)).library for event in drawn}
    return libraries - {""}


def reported_findings(a: Record, b: Record, survey: Survey) -> tuple[Finding, ...]:
    """Make a finding for each line whose values were read out and differ, in order.

    Args:
        a: the first record.
        b: the second.
        survey: the comparison of both, step by step.
    """
    listed = sorted(survey.reported.values(), key=lambda reported: reported.first)
    findings = []
    for reported in listed:
        steps = Evidence.of(EvidenceCode.STEPS_DIFFER, reported.steps)
        findings.append(value_finding(a, b, *reported.first).with_evidence(steps))
    return tuple(findings)


def _earlier(survey: Survey, first_step: StepDifference) -> list[Evidence]:
    return [
        Evidence.of(EvidenceCode.ALREADY_DIFFERED, kind, step)
        for kind, step in survey.early.items()
        if kind in (EventKind.BATCH, EventKind.LOSS) and step < first_step.step
    ]


def _by_event(difference: StepDifference) -> list[list[TensorPair]]:
    groups: dict[tuple[int, int], list[TensorPair]] = {}
    for pair in difference.state.pairs:
        seqs = (pair.a.event.seq if pair.a else -1, pair.b.event.seq if pair.b else -1)
        groups.setdefault(seqs, []).append(pair)
    return list(groups.values())


def _of_state(pairs: list[TensorPair], step: int) -> Finding:
    first, shown = pairs[0], [pair.a or pair.b for pair in pairs]
    event = (first.a or first.b).event  # type: ignore[union-attr] # one of both runs has it
    lines = [
        Evidence.of(EvidenceCode.ONE_SIDED_TENSOR, pair.only_in, pair.role, pair.name, pair.info)
        for pair in pairs
        if pair.only_in
    ]
    origin = replace(
        Origin.at(event),
        step=step,
        names=tuple(pair.name for pair in pairs),
        outputs=tuple(describe(tensor.info) for tensor in shown if tensor),
        events=(first.a.event.seq if first.a else None, first.b.event.seq if first.b else None),
        positions=tuple(pair.a.position for pair in pairs if pair.a and pair.b),
        other_site=_other_line(first.a.event, first.b.event) if first.a and first.b else None,
        of_second=first.a is None,
    )
    return Finding(origin, Diagnosis(evidence=tuple(lines[:5])))


def value_finding(a: Record, b: Record, seq_a: int, seq_b: int) -> Finding:
    """Make a finding for a read, save, batch or loss that both runs have with different values."""
    first, second = a.event(seq_a), b.event(seq_b)
    positions = _differing_positions(first, second)
    origin = replace(
        Origin.at(first),
        names=tuple(first.tensors[i].name for i in positions if first.tensors[i].name),
        outputs=values_of(first),
        events=(seq_a, seq_b),
        positions=positions,
        other_site=_other_line(first, second),
    )
    return Finding(origin, Diagnosis(evidence=_shape_evidence(first, second)))


def _other_line(a: Event, b: Event) -> Site | None:
    return None if same_line(a.site, b.site) else b.site


def _differing_positions(a: Event, b: Event) -> tuple[int, ...]:
    return tuple(i for i, (x, y) in enumerate(zip(a.digests, b.digests, strict=False)) if x != y)


def _shape_evidence(a: Event, b: Event) -> tuple[Evidence, ...]:
    ours, theirs = values_of(a), values_of(b)
    if ours == theirs:
        return ()
    return (Evidence.of(EvidenceCode.SHAPES_DIFFER, a.site, ours, theirs),)


def _position(origin: Origin) -> int:
    first, second = origin.events
    return first if first is not None else second if second is not None else 0
