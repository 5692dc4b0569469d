"""The events of a record, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from samebits.comparison.tables import Table
from samebits.records.events import END
from samebits.records.kinds import EventKind
from samebits.rng.sources import is_seeded_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.comparison.lookup import Record
    from samebits.records.events import Event

STEP_KINDS = (
    EventKind.BATCH,
    EventKind.LOSS,
    EventKind.GRAD,
    EventKind.STEP,
    EventKind.RNG,
    EventKind.READ,
    EventKind.SAVE,
)
_OUTPUTS = (EventKind.READ, EventKind.SAVE)
_CLOSING = (EventKind.STEP, EventKind.LOSS, EventKind.GRAD)


@dataclass
class Step:
    """The events between two step boundaries.

    In some records reads count as boundaries until the first backward pass or optimizer step, so that a line
    that prints once more would shift every later step. Such reads are merged with the step that follows.
    Several optimizers that follow one backward pass make one step.

    Args:
        first: number of the first recorded step in it.
        last: number of the last recorded step in it, which is its own number.
        hard: whether it has a backward pass or an optimizer step.
        closed: whether the run went past its boundary.
        states: its `step` events.
        ends: the `step` event at the end of the script, if it came.
        grads: its `grad` events.
        seeds: its `rng` events that seed.
        generators: digest of the last state of each generator in the step, unless a seeding followed.
        drawn: generators whose state changed within the step.
        outputs: reads and saves.
        evidence: batches and losses.
        threads: the threads that made steps.
    """

    first: int
    last: int
    hard: bool = False
    closed: bool = False
    states: list[Event] = field(default_factory=list)
    ends: list[Event] = field(default_factory=list)
    grads: list[Event] = field(default_factory=list)
    seeds: list[Event] = field(default_factory=list)
    generators: dict[str, bytes] = field(default_factory=dict)
    drawn: set[str] = field(default_factory=set)
    outputs: Table = field(default_factory=Table)
    evidence: Table = field(default_factory=Table)
    threads: set[str] = field(default_factory=set)

    def add(self, event: Event) -> None:
        """Take in the next event."""
        self.last = event.step
        if event.kind == EventKind.STEP:
            (self.ends if event.op == END else self.states).append(event)
            if event.op != END:
                self.threads.add(event.thread)
        elif event.kind == EventKind.GRAD:
            self.grads.append(event)
        elif event.kind == EventKind.RNG:
            self._add_generators(event)
        else:
            (self.outputs if event.kind in _OUTPUTS else self.evidence).add(event)
        self.hard |= event.kind in _CLOSING and event.op != END

    @property
    def n_reads(self) -> int:
        """The number of values that were read out."""
        return sum(len(column) for key, column in self.outputs.columns.items() if key[0] == EventKind.READ)

    def reads_before(self, seq: int) -> int:
        """Count the values that were read out before an event."""
        columns = (column for key, column in self.outputs.columns.items() if key[0] == EventKind.READ)
        return sum(sum(other < seq for other in column.seqs) for column in columns)

    def absorb(self, other: Step) -> None:
        """Take in what came after this step, because an optimizer that belongs to it was late."""
        self.seeds += other.seeds
        self.ends += other.ends
        for name, state in other.generators.items():
            if self.generators.setdefault(name, state) != state:
                self.drawn.add(name)
            self.generators[name] = state
        self.drawn |= other.drawn
        self.outputs.absorb(other.outputs)
        self.evidence.absorb(other.evidence)
        self.threads |= other.threads

    def _add_generators(self, event: Event) -> None:
        if event.op == "seed":
            self.seeds.append(event)
            for name in [name for name in self.generators if is_seeded_by(name, event.arguments)]:
                del self.generators[name]  # it has another state now
        else:
            for info, state in zip(event.tensors, event.digests, strict=True):
                if self.generators.setdefault(info.name, state) != state:
                    self.drawn.add(info.name)
                self.generators[info.name] = state


def steps(record: Record, last_step: int | None = None) -> Iterator[Step]:
    """Yield the steps of a record; the last one may be what came after the last boundary.

    Args:
        record: the record.
        last_step: number of the last step to read.
    """
    previous: Step | None = None
    step: Step | None = None
    for event in record.events(STEP_KINDS, last_step=last_step):
        if previous is not None and _belongs(event, previous):
            if step is not None:
                previous.absorb(step)
                step = None
            previous.add(event)
            continue
        if step is not None and event.step > step.last and step.hard:
            if previous is not None:
                yield previous
            step.closed = True
            previous, step = step, None
        if step is None:
            step = Step(event.step, event.step)
        step.add(event)
        if previous is not None and step.hard:
            yield previous
            previous = None
    if previous is not None:
        yield previous
    if step is not None:
        step.closed = step.hard and (bool(step.states) or step.last < record.info.steps)
        yield step


def _belongs(event: Event, step: Step) -> bool:
    """Tell whether an event is of a further optimizer after one backward pass (see `OptimizerProbe`)."""
    return event.kind in (EventKind.STEP, EventKind.GRAD) and event.op != END and event.step <= step.last
