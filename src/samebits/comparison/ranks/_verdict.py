"""Judges the ranks of one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits._text.str_enum import StrEnum
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.ranks._data_shares import data_shares
from samebits.comparison.ranks._rank_events import RankStep, rank_steps
from samebits.comparison.ranks._replicas import ReplicaWalk
from samebits.comparison.reasons import Reason, ReasonCode
from samebits.comparison.results import Comparison, Diagnosis, Finding, Origin
from samebits.records.kinds import EventKind
from samebits.records.notes import Note, NoteCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits._runtime.frames import Site
    from samebits.comparison.lookup import Record
    from samebits.comparison.ranks._data_shares import DataShares
    from samebits.comparison.ranks._replicas import Split
    from samebits.comparison.results import Verdict

_SHOWN = 3  # failures


class LeftOutCode(StrEnum):
    """Why tensors are not compared over the ranks."""

    SHARDS = "shards"
    """Each rank has its own part of them."""
    OWN = "own"
    """They differed from the start, and nothing says that they are replicas."""
    BUFFERS = "buffers"
    """All buffers; without names."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Tensors that were not compared.

    Args:
        code: why.
        names: their names.
    """

    code: LeftOutCode
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class RankComparison:
    """The verdict over the ranks of one run.

    Args:
        comparison: `different` when replicas diverge for good, or when ranks that should divide the data do
            not; its findings say where. `identical` when replicas were compared and stayed equal.
        ranks: the numbers of the ranks that were compared.
        compared: names of the parameters that were compared.
        left_out: the tensors that were not compared, and why.
    """

    comparison: Comparison
    ranks: tuple[int, ...]
    compared: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def compare_ranks(records: Mapping[int, Record], world_size: int) -> RankComparison:
    """Compare the ranks of one run with each other.

    Args:
        records: by rank, at least one.
        world_size: how many ranks there should be.
    """
    walk, last, same_batches = ReplicaWalk(), dict.fromkeys(records, 0), 0
    streams = {rank: rank_steps(record) for rank, record in records.items()}
    steps: dict[int, RankStep] = {}
    while streams and len(records) > 1:
        steps = {rank: step for rank, stream in streams.items() if (step := next(stream, None)) is not None}
        last.update((rank, step.number + 1) for rank, step in steps.items() if step.state is not None)
        if len(steps) < len(records) or len({step.number for step in steps.values()}) > 1:
            break
        walk.add(steps)
        same_batches += _same_batches(steps)
    for rank, stream in streams.items():
        last[rank] = max([last[rank], *(step.number + 1 for step in stream if step.state is not None)])
    shares = data_shares(records)
    return _result(records, world_size, walk, last, shares, same_batches)


def _same_batches(steps: Mapping[int, RankStep]) -> bool:
    batches = [tuple(step.batches) for step in steps.values()]
    return bool(batches[0]) and len(set(batches)) == 1


def _result(
    records: Mapping[int, Record],
    world_size: int,
    walk: ReplicaWalk,
    last: Mapping[int, int],
    shares: DataShares,
    same_batches: int,
) -> RankComparison:
    verdict: Verdict
    reason: Reason | None
    splits = walk.splits()
    findings = [_finding(splits)] if splits else []
    findings += [_data_finding(*each) for each in shares.wrong]
    reasons = [_divergence(splits)] if splits else []
    reasons += [reason for _, _, reason in shares.wrong]
    unfit = _unfit(records, world_size, last)
    notes = [*_notes(walk, last), *shares.notes]
    if same_batches and not any(note.code is NoteCode.SAME_SAMPLES for note in notes):
        notes.append(Note.of(NoteCode.SAME_BATCHES, same_batches, walk.steps))
    compared = walk.compared()
    if findings:
        verdict, reason = "different", reasons[0]
        notes = [Note.of(NoteCode.UNFIT, unfit), *notes] if unfit else notes
    elif unfit or not compared or not walk.steps:
        verdict, reason = "not_judged", unfit or Reason.of(ReasonCode.NO_REPLICAS)
    else:
        verdict, reason = "identical", None
    comparison = Comparison(
        verdict,
        reason,
        walk.steps,
        tuple(findings),
        tuple(notes),
        step_findings=tuple(findings),
        first_step=findings[0].origin.step if findings else None,
        state=verdict,
    )
    return RankComparison(comparison, tuple(sorted(records)), tuple(compared), _left_out(walk))


def _finding(splits: list[Split]) -> Finding:
    """Make a finding of the first split, with all tensors that diverged at the same moment."""
    first, reason = splits[0], _divergence(splits)
    names, _, away, *_ = reason.arguments
    event = first.events[away[0]]
    origin = Origin(EventKind.STEP, first.step, event.op, None, event.site, None, None, names=names)
    evidence = Evidence.of(EvidenceCode.RANKS_DIFFER, reason), _evidence(first)
    return Finding(origin, Diagnosis(evidence=evidence))


def _divergence(splits: list[Split]) -> Reason:
    """Return the reason: which ranks diverge from the others in the first split, and in which tensors."""
    first = splits[0]
    names = tuple(s.name for s in splits if (s.step, s.before) == (first.step, first.before))
    main, *odd = first.groups
    away = tuple(sorted(rank for group in odd for rank in group))
    return Reason.of(ReasonCode.RANKS_DIVERGED, names, tuple(main), away, first.step, first.before)


def _evidence(split: Split) -> Evidence:
    if split.before:
        return Evidence.of(EvidenceCode.DIFFERENT_BEFORE_FIRST_STEP)
    if split.gradients is None:
        return Evidence.of(EvidenceCode.NO_GRADIENT)
    return Evidence.of(EvidenceCode.GRADIENTS_EQUAL if split.gradients else EvidenceCode.GRADIENTS_DIFFER)


def _data_finding(step: int, site: Site | None, reason: Reason) -> Finding:
    origin = Origin(EventKind.BATCH, step, "DataLoader", None, site, None, None)
    return Finding(origin, Diagnosis(evidence=(Evidence.of(EvidenceCode.RANKS_DIFFER, reason),)))


def _unfit(records: Mapping[int, Record], world_size: int, last: Mapping[int, int]) -> Reason | None:
    """Return the reason why the records cannot vouch for the whole run; None when they can."""
    missing = tuple(sorted(set(range(world_size)) - set(records)))
    killed = tuple(rank for rank, record in records.items() if record.info.status == "running")
    failed = [rank for rank, record in records.items() if record.info.status == "failed"]
    failed.sort(key=lambda rank: (last[rank], rank))  # the cause before what it led to
    failures = tuple((rank, last[rank], records[rank].info.failure) for rank in failed[:_SHOWN])
    if not (missing or killed or failures):
        return None
    return Reason.of(ReasonCode.RANKS_INCOMPLETE, missing, killed, failures)


def _notes(walk: ReplicaWalk, last: Mapping[int, int]) -> list[Note]:
    notes, numbers = [], sorted(set(last.values()))
    if len(numbers) > 1:
        ranks = ((number, tuple(rank for rank in last if last[rank] == number)) for number in numbers)
        notes.append(Note.of(NoteCode.RANK_STEPS, *ranks))
    averaged = walk.averaged()
    if averaged:
        notes.append(Note.of(NoteCode.AVERAGED, *averaged))
    return notes


def _left_out(walk: ReplicaWalk) -> tuple[LeftOut, ...]:
    named = ((LeftOutCode.SHARDS, tuple(walk.shards)), (LeftOutCode.OWN, tuple(walk.own())))
    return (*(LeftOut(code, names) for code, names in named if names), LeftOut(LeftOutCode.BUFFERS))
