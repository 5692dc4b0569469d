"""The events of one rank, step by step."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from samebits.recording.events import END

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.comparison.sources import Record
    from samebits.recording.events import Event

KINDS = ("collective", "batch", "loss", "grad", "step")
REPLICAS = "replicas"  # as the probe names its events


@dataclass
class RankStep:
    """What one rank did between two step boundaries.

    Args:
        number: of the step.
        replicas: the `replicas` events.
        state: the `step` event; None when the rank did not come to it.
        gradients: digest of the last gradient of each name.
        losses: how many backward passes there were.
        batches: the digests of its batches.
    """

    number: int
    replicas: list[Event] = field(default_factory=list)
    state: Event | None = None
    gradients: dict[str, bytes] = field(default_factory=dict)
    losses: int = 0
    batches: list[bytes] = field(default_factory=list)

    def add(self, event: Event) -> None:
        """Take in the next event."""
        if event.kind == "step" and event.op != END:
            self.state = event
        elif event.kind == "grad" and event.op != "grad":
            self.gradients.update((t.name, d) for t, d in zip(event.tensors, event.digests, strict=True))
        elif event.kind == "loss":
            self.losses += 1
        elif event.kind == "batch":
            self.batches.append(b"".join(event.digests))
        elif event.kind == "collective" and event.op == REPLICAS:
            self.replicas.append(event)


def rank_steps(record: Record) -> Iterator[RankStep]:
    """The steps of one rank, one at a time."""
    step: RankStep | None = None
    for event in record.events(KINDS):
        if step is not None and event.step > step.number:
            yield step
            step = None
        step = step or RankStep(event.step)
        step.add(event)
    if step is not None:
        yield step


def facts_of(event: Event) -> dict[str, Any]:
    """The JSON object of a `collective` event; empty for anything else: a record is not trusted."""
    try:
        found = json.loads(event.arguments)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
