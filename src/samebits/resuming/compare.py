"""Compares a resumed run, or one that was killed, with the steps of the whole run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from samebits.comparison.states import compare_states
from samebits.comparison.tables import compare_tables
from samebits.resuming.results import FirstDifference
from samebits.resuming.trained import is_optimizer_step, optimizer_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.comparison.sources import Record
    from samebits.comparison.states import TensorPair
    from samebits.comparison.steps import Step
    from samebits.recording.events import Event

_NAMED = 3
_KIND_ORDER = ("batch", "loss", "grad", "step", "read", "save")
_STATE_BYTES = 16  # the smallest state of a generator, as a tensor


@dataclass(frozen=True)
class Course:
    """How far two runs went together.

    Args:
        compared: how many optimizer steps are identical, from the first on.
        difference: the first difference.
        steps: how many optimizer steps the second run made.
        drawn: generators that the whole run drew from in the steps that were looked at, or after.
    """

    compared: int
    difference: FirstDifference | None
    steps: int
    drawn: frozenset[str] = frozenset()


def compare_from(whole: Record, other: Record, start: int, *, to_end: bool = True) -> Course:
    """Compare a run with the whole run from a step on.

    Args:
        whole: record of the whole run.
        other: record of the run that begins there.
        start: number of the step of the whole run.
        to_end: whether what comes after the last step is compared too.
    """
    ours = _from(optimizer_steps(whole), start)
    compared = made = 0
    difference: FirstDifference | None = None
    drawn: set[str] = set()
    for a, b in zip_longest(ours, optimizer_steps(other)):
        drawn |= a.drawn if a is not None else set()
        is_step = b is not None and is_optimizer_step(b)
        made += is_step
        if difference is not None or a is None or b is None or is_step != is_optimizer_step(a):
            continue
        if is_step or to_end:
            is_first = made == 1 and is_step
            difference = _difference((whole, other), (a, b), start + compared, is_first=is_first)
        compared += is_step and difference is None
    return Course(compared, difference, made, frozenset(drawn))


def _from(found: Iterator[Step], start: int) -> Iterator[Step]:
    """The steps from an optimizer step on."""
    return islice(found, start, None)


def _difference(
    records: tuple[Record, Record], both: tuple[Step, Step], number: int, *, is_first: bool
) -> FirstDifference | None:
    """The first thing that differs in a step; None if nothing that counts does."""
    (whole, other), (a, b) = records, both
    pairs = compare_states(a, b, ()).pairs
    if is_first:  # gradients that wait to be zeroed; where they count, the state differs after the step
        pairs = [found for found in pairs if found.role != "grad" or found.b is not None]
    pairs = _without_renamed(pairs)
    outputs = [pair for pair in compare_tables(a.outputs, b.outputs).differing if _counts(whole, other, pair)]
    if not pairs and not outputs:
        return None
    evidence = compare_tables(a.evidence, b.evidence).differing if pairs else []
    events = [(whole.event(i), other.event(j)) for i, j in [*evidence, *outputs]]
    found = [(second, _value_text(first, second)) for first, second in events]
    for pair in pairs:
        place = pair.b or pair.a
        if place is not None:
            found.append(
                (place.event, _pairs_text([p for p in pairs if _event(p) is place.event], len(pairs)))
            )
    event, text = min(found, key=lambda item: (_KIND_ORDER.index(item[0].kind), item[0].seq))
    return FirstDifference(number, event.kind, text, event.site)


def _event(pair: TensorPair) -> Event | None:
    place = pair.b or pair.a
    return None if place is None else place.event


def _without_renamed(pairs: list[TensorPair]) -> list[TensorPair]:
    """What differs in content; what the whole run has must be there under any name, more does no harm.

    A model that a checkpoint was unpickled to, or that exists twice for a while, moves names.
    """
    if all(pair.a is not None and pair.b is not None for pair in pairs):
        return pairs
    kept: list[TensorPair] = []
    for role in dict.fromkeys(pair.role for pair in pairs):
        of_role = [pair for pair in pairs if pair.role == role]
        ours = Counter(pair.a.digest for pair in of_role if pair.a)
        theirs = Counter(pair.b.digest for pair in of_role if pair.b)
        if ours - theirs:
            kept += [pair for pair in of_role if pair.a is not None]
    return kept


def _counts(whole: Record, other: Record, pair: tuple[int, int]) -> bool:
    """Whether a value that differs counts: generator states in a checkpoint do not."""
    first, second = whole.event(pair[0]), other.event(pair[1])
    if first.kind != "save" or first.tensors != second.tensors:
        return True
    differing = [i for i, (x, y) in enumerate(zip(first.digests, second.digests, strict=True)) if x != y]
    return any(not _is_generator_state(first, i) for i in differing)


def _is_generator_state(event: Event, position: int) -> bool:
    info = event.tensors[position]
    return info.dtype == "uint8" and len(info.shape) == 1 and info.shape[0] >= _STATE_BYTES


def _value_text(a: Event, b: Event) -> str:
    words = {"batch": "the batch of the DataLoader", "loss": "the loss", "read": f"a value read ({b.op})"}
    text = words.get(b.kind, f"what is saved ({b.op})")
    differing = [i for i, (x, y) in enumerate(zip(a.digests, b.digests, strict=False)) if x != y]
    names = [b.tensors[i].name for i in differing if b.tensors[i].name]
    return f"{text}: {_list(names)}" if names and b.kind == "save" else text


def _pairs_text(pairs: list[TensorPair], total: int) -> str:
    words = {"grad": "gradient", "param": "parameter", "optimizer": "optimizer state"}
    first = pairs[0]
    more = f" and {total - 1} more" if total > 1 else ""
    only = " (the resumed run has none)" if first.b is None else ""
    return f"{words.get(first.role, first.role)} {first.name}{more}{only}"


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
