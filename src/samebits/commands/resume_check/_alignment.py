"""Finds the step at which a resumed run begins, and compares its steps with those of the whole run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from samebits.commands.resume_check._state_log import (
    before_step,
    is_optimizer_step,
    optimizer_steps,
    steps_before,
    update,
)
from samebits.commands.resume_facts import DifferenceKind, Fact, FactCode, FirstDifference
from samebits.comparison.states import compare_states
from samebits.comparison.steps import compare_tables
from samebits.records.kinds import EventKind, Role

if TYPE_CHECKING:
    from pathlib import Path

    from samebits.commands.resume_check._state_log import Before, Digests, StateLogLines
    from samebits.comparison.lookup import Record
    from samebits.comparison.states import TensorPair
    from samebits.comparison.steps import Step
    from samebits.records.events import Event

_SHORT = 8  # bytes of a digest in the state log


@dataclass(frozen=True)
class Start:
    """The step at which the resumed run begins.

    Args:
        step: number of the step of the whole run; None if its parameters are like those of none.
        missing: names of the parameters that differ from those before that step.
        total: how many parameters the whole run has.
    """

    step: int | None
    missing: tuple[str, ...] = ()
    total: int = 0


@dataclass(frozen=True)
class WholeRun:
    """The run that was not killed.

    Args:
        record: path of its record.
        log: path of its state log.
        lines: of the log.
    """

    record: Path
    log: Path
    lines: StateLogLines


def find_start(whole: WholeRun, record: Record, first: Before, killed_after: int) -> Start:
    """Find the step of the whole run before which its parameters were those of the resumed run.

    Several steps may have the same parameters (a learning rate of 0 while warming up): then the rest of the
    state decides, and last the distance to the kill.

    Args:
        whole: the whole run.
        record: its record.
        first: the state before the first step of the resumed run.
        killed_after: steps that the killed run made.
    """
    own = (first.params, first.buffers, first.optimizer)
    keys = whole.lines.keys
    same = [step for step, key in enumerate(keys) if key[0] and key[0] == own[0]]
    names = tuple(name for role, name, _ in first.tensors if role == Role.PARAM)
    if not same:
        nearest = _nearest(whole, record, first, killed_after, _by_optimizer(whole, first))
        if nearest.step is not None:
            return nearest
    if not same or max(same) == 0:
        beside = _by_the_rest(whole, first)  # perhaps all but the parameters is restored
        if beside or not same:
            return Start(beside, names, len(names))

    def rank(step: int) -> tuple[int, bool, int]:
        return (
            sum(a == b for a, b in zip(keys[step], own, strict=True)),
            step <= killed_after,
            -abs(step - killed_after),
        )

    return Start(max(same, key=rank), (), len(names))


def _by_optimizer(whole: WholeRun, first: Before) -> int | None:
    """Return the one step before which the optimizers had that state; None if there is none."""
    matches = [step for step, key in enumerate(whole.lines.keys) if key[2] and key[2] == first.optimizer]
    return matches[0] if len(matches) == 1 else None


def _by_the_rest(whole: WholeRun, first: Before) -> int | None:
    """Return the one step with that optimizer state, or else that state of torch's generator, if any."""
    if first.optimizer:
        return _by_optimizer(whole, first)
    state = first.generators.get("torch")
    matches = [b.step for b in steps_before(whole.log) if b.generators.get("torch") == state]
    return matches[0] if len(matches) == 1 else None


def _nearest(whole: WholeRun, record: Record, first: Before, killed_after: int, likely: int | None) -> Start:
    """Return the step with which the most parameters agree; none if only constant ones agree.

    Parameters that agree and have moved since the start count most: if one of two models, such as the
    generator of a GAN, was not restored, all of its parameters are as at the start. At the likely step, one
    that agrees is enough.
    """
    own = {(role, name): digest for role, name, digest in first.tensors if role == Role.PARAM}
    held = Counter(own.values())
    initial: dict[str, str] = {}
    best, least, most = Start(None), -1, (-1, -1)
    for step, digests in enumerate(_states(whole, record)):
        theirs = {
            name: digest[:_SHORT].hex() for (role, name), digest in digests.items() if role == Role.PARAM
        }
        initial = initial or theirs
        missing = [name for name, digest in theirs.items() if own.get((Role.PARAM, name)) != digest]
        if missing and not Counter(theirs.values()) - held:
            missing = []  # all are there, under other names
        moved = sum(theirs[name] != initial.get(name) for name in theirs.keys() - missing)
        agreeing = (moved, len(theirs) - len(missing))
        if step == likely and moved:
            return Start(step, tuple(missing), len(theirs))
        least = agreeing[1] if least < 0 else min(least, agreeing[1])
        if agreeing > most or (agreeing == most and step <= killed_after):
            best, most = Start(step, tuple(missing), len(theirs)), agreeing
    if not best.missing and best.total:
        return best
    return best if most[0] > 0 or most[1] > max(least, 0) else Start(None, (), best.total)


def _states(whole: WholeRun, record: Record) -> list[Digests]:
    """Return the model's state before each step: the initial one, then the one that each step left."""
    initial = before_step(whole.log, 0)
    digests: Digests = {}
    if initial is not None:
        digests = {(role, name): bytes.fromhex(digest) for role, name, digest in initial.tensors}
    states = [dict(digests)]
    for step in optimizer_steps(record):
        if is_optimizer_step(step):
            update(digests, step)
            states.append({key: value for key, value in digests.items() if key[0] == Role.PARAM})
    return states[:-1] or states


def state_before(whole: WholeRun, record: Record, number: int) -> dict[tuple[Role, str], str]:
    """Return the whole run's state before a step: short digests by role and name."""
    initial = before_step(whole.log, 0)
    if number == 0:
        return {} if initial is None else {(role, name): digest for role, name, digest in initial.tensors}
    digests: Digests = {}
    passed = 0
    for step in optimizer_steps(record):
        if passed == number:
            break
        if is_optimizer_step(step):
            update(digests, step)
            passed += 1
    return {key: digest[:_SHORT].hex() for key, digest in digests.items()}


_KIND_ORDER = (
    EventKind.BATCH,
    EventKind.LOSS,
    EventKind.GRAD,
    EventKind.STEP,
    EventKind.READ,
    EventKind.SAVE,
)
_STATE_BYTES = 16  # the smallest state of a generator, as a tensor


@dataclass(frozen=True)
class Course:
    """The part of two runs that is identical, and the first difference.

    Args:
        compared: how many optimizer steps are identical, from the first on.
        difference: the first difference.
        steps: how many optimizer steps the second run made.
    """

    compared: int
    difference: FirstDifference | None
    steps: int


def compare_from(whole: Record, other: Record, start: int, *, to_end: bool = True) -> Course:
    """Compare a run with the whole run from a step on.

    Args:
        whole: record of the whole run.
        other: record of the run that begins there.
        start: number of the step of the whole run.
        to_end: whether events after the last step are compared too.
    """
    ours = islice(optimizer_steps(whole), start, None)
    compared = made = 0
    difference: FirstDifference | None = None
    for a, b in zip_longest(ours, optimizer_steps(other)):
        is_step = b is not None and is_optimizer_step(b)
        made += is_step
        if difference is not None or a is None or b is None or is_step != is_optimizer_step(a):
            continue
        if is_step or to_end:
            is_first = made == 1 and is_step
            difference = _difference((whole, other), (a, b), start + compared, is_first=is_first)
        compared += is_step and difference is None
    return Course(compared, difference, made)


def _difference(
    records: tuple[Record, Record], both: tuple[Step, Step], number: int, *, is_first: bool
) -> FirstDifference | None:
    """Return the first difference in a step; None if there is none that counts."""
    (whole, other), (a, b) = records, both
    pairs = compare_states(a, b, ()).pairs
    if is_first:  # gradients that wait to be zeroed; where they count, the state differs after the step
        pairs = [pair for pair in pairs if pair.role != Role.GRAD or pair.b is not None]
    pairs = _without_renamed(pairs)
    outputs = [pair for pair in compare_tables(a.outputs, b.outputs).differing if _counts(whole, other, pair)]
    if not pairs and not outputs:
        return None
    evidence = compare_tables(a.evidence, b.evidence).differing if pairs else []
    events = [(whole.event(i), other.event(j)) for i, j in [*evidence, *outputs]]
    differing = [(second, _value(first, second)) for first, second in events]
    for pair in pairs:
        own = _event(pair)
        if own is not None:
            differing.append((own, _tensor(next(p for p in pairs if _event(p) is own), len(pairs) - 1)))
    event, fact = min(differing, key=lambda item: (_KIND_ORDER.index(item[0].kind), item[0].seq))
    return FirstDifference(number, DifferenceKind(event.kind), fact, event.site)


def _event(pair: TensorPair) -> Event | None:
    tensor = pair.b or pair.a
    return None if tensor is None else tensor.event


def _without_renamed(pairs: list[TensorPair]) -> list[TensorPair]:
    """Leave out pairs that differ by name only: the whole run's tensors must exist under any name.

    Names move when a checkpoint is unpickled to a model, or when a model exists twice for a while.
    """
    if all(pair.a is not None and pair.b is not None for pair in pairs):
        return pairs
    differing: list[TensorPair] = []
    for role in dict.fromkeys(pair.role for pair in pairs):
        of_role = [pair for pair in pairs if pair.role == role]
        ours = Counter(pair.a.digest for pair in of_role if pair.a)
        theirs = Counter(pair.b.digest for pair in of_role if pair.b)
        if ours - theirs:
            differing += [pair for pair in of_role if pair.a is not None]
    return differing


def _counts(whole: Record, other: Record, pair: tuple[int, int]) -> bool:
    """Tell whether a differing value counts: generator states in a checkpoint do not."""
    first, second = whole.event(pair[0]), other.event(pair[1])
    if first.kind != EventKind.SAVE or first.tensors != second.tensors:
        return True
    differing = [i for i, (x, y) in enumerate(zip(first.digests, second.digests, strict=True)) if x != y]
    return any(not _is_generator_state(first, i) for i in differing)


def _is_generator_state(event: Event, position: int) -> bool:
    info = event.tensors[position]
    return info.dtype == "uint8" and len(info.shape) == 1 and info.shape[0] >= _STATE_BYTES


def _value(a: Event, b: Event) -> Fact:
    if b.kind == EventKind.BATCH:
        return Fact.of(FactCode.BATCH)
    if b.kind == EventKind.LOSS:
        return Fact.of(FactCode.LOSS)
    if b.kind == EventKind.READ:
        return Fact.of(FactCode.VALUE_READ, b.op)
    differing = [i for i, (x, y) in enumerate(zip(a.digests, b.digests, strict=False)) if x != y]
    names = tuple(b.tensors[i].name for i in differing if b.tensors[i].name)
    return Fact.of(FactCode.VALUE_SAVED, b.op, names)


def _tensor(pair: TensorPair, others: int) -> Fact:
    return Fact.of(FactCode.TENSOR, pair.role, pair.name, others, pair.b is None)
