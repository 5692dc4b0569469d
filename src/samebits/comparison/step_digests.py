"""One digest for each step of a record, for a lock file: what must be equal for two runs to be identical.

The names of tensors and the lines of the script are left out, so that a change of the code that changes no
bits changes no digest either.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from samebits.comparison.steps import steps
from samebits.records.events import several_threads
from samebits.records.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from samebits.comparison.lookup import Record
    from samebits.comparison.steps import Column, Step
    from samebits.records.events import Event

_SIZE = 16


@dataclass(frozen=True, slots=True)
class StepDigest:
    """The bits of one step of a run.

    Args:
        first: number of the first recorded step in it; several optimizers may step after one backward pass.
        last: number of the last.
        closed: whether the run went past its boundary. What comes after the last boundary is not closed.
        state: digest of its gradients and of the state at its boundary, in hexadecimal; empty without any.
        values: digest of what was read out or saved; empty without any.
    """

    first: int
    last: int
    closed: bool
    state: str
    values: str


def step_digests(record: Record) -> tuple[StepDigest, ...] | None:
    """Return the digests of the steps of a run, in order.

    Args:
        record: of any level.

    Returns:
        None where several threads make steps: the order of their steps is chance.
    """
    if several_threads(record.events((EventKind.STEP,))):
        return None
    return tuple(_digests(record))


def _digests(record: Record) -> Iterator[StepDigest]:
    held: frozenset[str] = frozenset()
    for step in steps(record):
        yield StepDigest(step.first, step.last, step.closed, _state(step, held), _values(step))
        if step.states:
            held = frozenset(info.name for event in step.states for info in event.tensors)


def _state(step: Step, held: frozenset[str]) -> str:
    """Return the digest of the gradients and states of a step.

    Args:
        step: the step.
        held: names in the state of the step before. Of the state at the end of the script only these count,
            if there are any: when other tensors are freed is chance.
    """
    known = frozenset(info.name for event in step.states for info in event.tensors) or held
    gradients = (event for event in step.grads if event.op != "grad")  # as in comparison.states
    parts = [_tensors(event) for event in chain(gradients, step.states)]
    parts += [_tensors(event, known) for event in step.ends if event.tensors]
    return _digest_of(part for part in parts if part)


def _tensors(event: Event, names: frozenset[str] = frozenset()) -> bytes:
    rows = (
        f"{info.role} {info.dtype} {info.shape} ".encode() + digest
        for info, digest in zip(event.tensors, event.digests, strict=True)
        if not names or info.name in names
    )
    return b"".join(rows)


def _values(step: Step) -> str:
    """Return the digest of what was read or saved; values of several threads in any order."""
    columns = list(step.outputs.columns.values())
    if len({name for column in columns for name in column.threads}) > 1:
        return _digest_of(sorted(digest for column in columns for digest in column.digests()))
    rows = (row for column in columns for row in _numbered(column))
    return _digest_of(digest for _, digest in sorted(rows))


def _numbered(column: Column) -> Iterator[tuple[int, bytes]]:
    return zip(column.seqs, column.digests(), strict=True)


def _digest_of(parts: Iterable[bytes]) -> str:
    """Return one digest of some bytes, their borders included; empty for none."""
    digest, empty = hashlib.blake2b(digest_size=_SIZE), True
    for part in parts:
        digest.update(struct.pack("<Q", len(part)) + part)
        empty = False
    return "" if empty else digest.hexdigest()


def merged(digests: Iterable[StepDigest]) -> StepDigest:
    """Return one digest of consecutive steps, of which there is at least one."""
    run = tuple(digests)
    state = _digest_of(each.state.encode() for each in run) if any(each.state for each in run) else ""
    values = _digest_of(each.values.encode() for each in run) if any(each.values for each in run) else ""
    return StepDigest(run[0].first, run[-1].last, run[-1].closed, state, values)
