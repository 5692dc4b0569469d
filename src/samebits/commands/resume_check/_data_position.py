"""Compares the batch at the first difference with the batch that was due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.commands.resume_facts import Fact, FactCode, Omission, Part, Position
from samebits.recording.naming import LOADER_GENERATOR
from samebits.records.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.commands.resume_check._state_log import Batch, Pass, StateLogLines
    from samebits.comparison.lookup import Record
    from samebits.records.events import Event

_FOLLOWING = 3  # batches after one that confirm its position


@dataclass(frozen=True)
class Loaded:
    """The batches of a run.

    Args:
        lines: its state log.
        record: its record, with the contents of batches.
    """

    lines: StateLogLines
    record: Record

    def contents(self, batch: Batch) -> tuple[bytes, ...]:
        """Return the digests of its tensors."""
        return self.record.event(batch.seq).digests


def wrong_batch(whole: Loaded, other: Loaded, step: int, start: int) -> Omission | None:
    """Return how the batches of a step differ; None when they do not, or there are none.

    Batches are paired from the last one of the step backwards: a run that skips by loading has more of them
    in its first step. With a loader that fetches one batch ahead, both fetch ahead.

    Args:
        whole: the whole run.
        other: the resumed run.
        step: number of the step of the whole run.
        start: the step at which the resumed run began.
    """
    ours = [batch for batch in whole.lines.batches if batch.step == step]
    theirs = [batch for batch in other.lines.batches if batch.step == step - start]
    for site in dict.fromkeys(batch.site for batch in reversed(theirs)):
        pairs = zip(
            (b for b in reversed(ours) if b.site == site), (b for b in reversed(theirs) if b.site == site),
            strict=False,
        )  # fmt: skip
        for due, got in pairs:
            if whole.contents(due) != other.contents(got):
                return _described(whole, other, due, got)
    return None


def _described(whole: Loaded, other: Loaded, due: Batch, got: Batch) -> Omission:
    known = {batch.seq: batch for batch in whole.lines.batches}
    contents = other.contents(got)
    same = [
        known[e.seq]
        for e in whole.record.events((EventKind.BATCH,))
        if e.digests == contents and e.seq in known
    ]
    going_on = _going_on(whole, other, same, got)
    if going_on or (same and got.indices is None):
        return _misplaced(due, _nearest(going_on or same, due), is_changed=False)
    passes = _made_from(whole.lines, other.lines, due, got)
    if due.indices is not None and got.indices is not None:
        if due.indices == got.indices:
            fact = Fact.of(FactCode.SAMPLES_CHANGED, due.indices)
            return Omission(Part.AUGMENTATION, fact, _drawn_in(other.lines, got, passes))
        again = [batch for batch in whole.lines.batches if batch.indices == got.indices]
        again = _going_on(whole, other, again, got)
        if again:
            return _misplaced(due, _nearest(again, due), is_changed=True)
        fact = Fact.of(FactCode.OTHER_SAMPLES, got.indices, due.indices, _position(due))
        return Omission(Part.DATA, fact, passes)
    evidence = passes, _drawn_in(other.lines, got, passes)
    return _by_parts(whole.record.event(due.seq), other.record.event(got.seq), due, evidence)


def _going_on(whole: Loaded, other: Loaded, batches: list[Batch], got: Batch) -> list[Batch]:
    """Return the batches after which the whole run goes on as the resumed one does.

    In small batches the same samples meet again by chance, in another order. A batch after which the pass
    ends sooner counts only if there is no other.
    """
    theirs = _following(other, got)
    agreeing: list[Batch] = []
    ending: list[Batch] = []
    for batch in batches:
        ours = _following(whole, batch)
        if _agree(whole, other, ours, theirs):
            (ending if len(ours) < len(theirs) else agreeing).append(batch)
    return agreeing or ending


def _agree(whole: Loaded, other: Loaded, ours: list[Batch], theirs: list[Batch]) -> bool:
    return all(
        whole.contents(a) == other.contents(b) or (a.indices is not None and a.indices == b.indices)
        for a, b in zip(ours, theirs, strict=False)
    )


def _following(run: Loaded, batch: Batch) -> list[Batch]:
    """Return the next batches of a pass."""
    if batch.number is None:
        return []
    one_pass = (batch.site, batch.pass_number)
    return [
        later for later in run.lines.batches
        if (later.site, later.pass_number) == one_pass and later.number is not None
        and batch.number < later.number <= batch.number + _FOLLOWING
    ]  # fmt: skip


def _misplaced(due: Batch, got: Batch, *, is_changed: bool) -> Omission:
    code, evidence = FactCode.BATCH_MOVED, None
    if got.step < due.step:
        code = FactCode.BATCH_REPEATED
        evidence = FactCode.POSITION_SAVED_EARLY if got.step == due.step - 1 else None
    elif got.step > due.step:
        code = FactCode.BATCHES_SKIPPED
        evidence = FactCode.POSITION_SAVED_LATE if got.step == due.step + 1 else None
    fact = Fact.of(code, _position(got), _position(due), is_changed)
    return Omission(Part.DATA, fact, () if evidence is None else (Fact.of(evidence),))


def _by_parts(
    due: Event, got: Event, batch: Batch, evidence: tuple[tuple[Fact, ...], tuple[Fact, ...]]
) -> Omission:
    """Describe the difference tensor by tensor, where the numbers of the samples are not known."""
    passes, drawn = evidence
    pairs = list(zip(due.tensors, due.digests, got.digests, strict=False))
    same = tuple(info.name for info, a, b in pairs if a == b)
    other = tuple(info.name for info, a, b in pairs if a != b)
    if same and other:
        return Omission(Part.AUGMENTATION, Fact.of(FactCode.TENSORS_CHANGED, same, other), drawn)
    return Omission(Part.DATA, Fact.of(FactCode.BATCH_UNKNOWN, _position(batch)), passes)


def _drawn_in(lines: StateLogLines, got: Batch, passes: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Return the draws made in workers and the origin of their seeds."""
    begin = _begin(lines.passes, got)
    if begin is None or not begin.workers:
        return ()
    if passes:
        return (*passes, Fact.of(FactCode.WORKERS_SEEDED))
    return (Fact.of(FactCode.WORKERS_REPEAT, begin.workers),)


def _made_from(ours: StateLogLines, theirs: StateLogLines, due: Batch, got: Batch) -> tuple[Fact, ...]:
    """Tell whether the generator of a pass's order and its workers' seeds had another state."""
    a, b = _begin(ours.passes, due), _begin(theirs.passes, got)
    if a is None or b is None:
        return ()
    name = LOADER_GENERATOR if LOADER_GENERATOR in a.generators else "torch"
    if a.generators.get(name) == b.generators.get(name):
        return ()
    return (Fact.of(FactCode.ITERATOR_GENERATOR, name),)


def _begin(passes: Sequence[Pass], batch: Batch) -> Pass | None:
    """Return the start of a batch's pass: the last with its number before the batch."""
    if batch.pass_number is None:
        return None
    begun = [p for p in passes if p.number == batch.pass_number and p.step <= batch.step]
    return begun[-1] if begun else None


def _nearest(batches: list[Batch], due: Batch) -> Batch:
    """Choose among equal batches one of the same pass, then the nearest."""
    return min(batches, key=lambda b: (b.pass_number != due.pass_number, abs(b.step - due.step)))


def _position(batch: Batch) -> Position:
    return Position(batch.step, batch.number, batch.pass_number)
