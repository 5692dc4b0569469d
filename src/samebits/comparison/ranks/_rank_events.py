"""The events of one rank, step by step."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from samebits.records.events import END
from samebits.records.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.comparison.lookup import Record
    from samebits.records.events import Event

_KINDS = (EventKind.COLLECTIVE, EventKind.BATCH, EventKind.LOSS, EventKind.GRAD, EventKind.STEP)
_REPLICAS = "replicas"  # as the probe names its events


@dataclass
class RankStep:
    """The events of one rank between two step boundaries.

    Args:
        number: of the step.
        replicas: the `replicas` events.
        state: the `step` event; None when the rank did not reach it.
        gradients: digest of the last gradient of each name.
        batches: the digests of its batches.
    """

    number: int
    replicas: list[Event] = field(default_factory=list)
    state: Event | None = None
    gradients: dict[str, bytes] = field(default_factory=dict)
    batches: list[bytes] = field(default_factory=list)

    def add(self, event: Event) -> None:
        """Take in the next event."""
        if event.kind == EventKind.STEP and event.op != END:
            self.state = event
        elif event.kind == EventKind.GRAD and event.op != "grad":
            self.gradients.update((t.name, d) for t, d in zip(event.tensors, event.digests, strict=True))
        elif event.kind == EventKind.BATCH:
            self.batches.append(b"".join(event.digests))
        elif event.kind == EventKind.COLLECTIVE and event.op == _REPLICAS:
            self.replicas.append(event)


def rank_steps(record: Record) -> Iterator[RankStep]:
    """Yield the steps of one rank."""
    step: RankStep | None = None
    for event in record.events(_KINDS):
        if step is not None and event.step > step.number:
            yield step
            step = None
        step = step or RankStep(event.step)
        step.add(event)
    if step is not None:
        yield step


def facts_of(event: Event) -> dict[str, Any]:
    """Return the JSON object of a `collective` event; empty for anything else: a record is not trusted."""
    try:
        facts = json.loads(event.arguments)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}
