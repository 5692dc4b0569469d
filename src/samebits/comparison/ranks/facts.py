"""The steps of each rank, and the result of a comparison of the ranks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from samebits._text.str_enum import StrEnum
from samebits.records.events import END
from samebits.records.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from samebits._runtime.frames import Site
    from samebits.comparison.lookup import Record
    from samebits.comparison.reasons import Reason
    from samebits.comparison.results import Comparison
    from samebits.records.events import Event
    from samebits.records.notes import Note


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


@dataclass
class DataShares:
    """The division of the data among the ranks.

    Args:
        wrong: contradictions to the purpose of the sampler: (step, site, reason).
        notes: remarks for the user.
    """

    wrong: list[tuple[int, Site | None, Reason]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def words(numbers: Iterable[int]) -> str:
    """Return ranks in words: `rank 1`, `ranks 0-2 and 5`."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    parts = [str(a) if a == b else f"{a}{'-' if b > a + 1 else ' and '}{b}" for a, b in spans]
    name = "rank" if len(spans) == 1 and spans[0][0] == spans[0][1] else "ranks"
    return f"{name} " + (f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts))


def some(names: Iterable[str], most: int = 3) -> str:
    """Return the first names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


KINDS = (EventKind.COLLECTIVE, EventKind.BATCH, EventKind.LOSS, EventKind.GRAD, EventKind.STEP)
REPLICAS = "replicas"  # as the probe names its events


@dataclass
class RankStep:
    """The events of one rank between two step boundaries.

    Args:
        number: of the step.
        replicas: the `replicas` events.
        state: the `step` event; None when the rank did not reach it.
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
        if event.kind == EventKind.STEP and event.op != END:
            self.state = event
        elif event.kind == EventKind.GRAD and event.op != "grad":
            self.gradients.update((t.name, d) for t, d in zip(event.tensors, event.digests, strict=True))
        elif event.kind == EventKind.LOSS:
            self.losses += 1
        elif event.kind == EventKind.BATCH:
            self.batches.append(b"".join(event.digests))
        elif event.kind == EventKind.COLLECTIVE and event.op == REPLICAS:
            self.replicas.append(event)


def rank_steps(record: Record) -> Iterator[RankStep]:
    """Yield the steps of one rank."""
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
    """Return the JSON object of a `collective` event; empty for anything else: a record is not trusted."""
    try:
        facts = json.loads(event.arguments)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}
