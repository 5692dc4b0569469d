"""The optimizer steps of a record."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from samebits.comparison.steps import steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.comparison.sources import Record
    from samebits.comparison.steps import Step

Digests = dict[tuple[str, str], bytes]  # by role and name


def optimizer_steps(record: Record) -> Iterator[Step]:
    """The steps that an optimizer closed, in order, and last what came after them, if anything.

    What lies between optimizer steps but was recorded as a step of its own (a backward pass before the first
    optimizer was made) is left out.
    """
    for step in steps(record):
        if is_optimizer_step(step) or not step.closed:
            yield step


def is_optimizer_step(step: Step) -> bool:
    """Whether an optimizer closed it."""
    return any(event.op.endswith(".step") for event in step.states)


def count_steps(record: Record) -> int:
    """How many optimizer steps a run made."""
    return sum(is_optimizer_step(step) for step in optimizer_steps(record))


def update(known: Digests, step: Step) -> None:
    """Take in the state that a step left: an event holds the state of the model and of one optimizer."""
    for event in step.states:
        for info, digest in zip(event.tensors, event.digests, strict=True):
            known[info.role, info.name] = digest


def counted(digests: Digests, role: str) -> Counter[bytes]:
    """The digests of one role, as often as they are there."""
    return Counter(digest for (kind, _), digest in digests.items() if kind == role)
