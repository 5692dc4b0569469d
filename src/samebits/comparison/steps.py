"""Events by step and kind, and what may differ between two runs of a step."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from samebits.comparison._alignment import align
from samebits.comparison._sites import site_key
from samebits.records.events import END
from samebits.records.kinds import EventKind
from samebits.rng.sources import is_seeded_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from samebits.comparison.lookup import Record
    from samebits.records.events import Event

    OnlyMoved = Callable[["Key", "tuple[Column, Column]"], bool]

_WIDTH = 16
Key = tuple["EventKind", str, Any]


def key_of(event: Event) -> Key:
    """Return the kind, op and site that the values of one column have in common."""
    return event.kind, event.op, site_key(event.site)


class Column:
    """The values of one site in order, 24 bytes each: a step may hold a million reads."""

    def __init__(self) -> None:
        self.seqs = array("q")
        self._digests = bytearray()
        self.threads: set[str] = set()

    def __len__(self) -> int:
        return len(self.seqs)

    def add(self, event: Event) -> None:
        """Append an event."""
        self.seqs.append(event.seq)
        self.threads.add(event.thread)
        single = event.digests[0] if len(event.digests) == 1 else b""
        if len(single) != _WIDTH:
            single = hashlib.blake2b(b"".join(event.digests), digest_size=_WIDTH).digest()
        self._digests += single

    def extend(self, other: Column) -> None:
        """Append the values of another column."""
        self.seqs.extend(other.seqs)
        self.threads |= other.threads
        self._digests += other._digests

    def contents(self) -> bytes:
        """Return all digests, one after the other."""
        return bytes(self._digests)

    def digest(self, row: int) -> bytes:
        """Return the digest of one value."""
        return bytes(self._digests[_WIDTH * row : _WIDTH * (row + 1)])

    def digests(self) -> list[bytes]:
        """Return the digests of all values."""
        return [self.digest(row) for row in range(len(self))]


class Table:
    """The values of one step, by kind, op and site."""

    def __init__(self) -> None:
        self.columns: dict[Key, Column] = {}

    def add(self, event: Event) -> None:
        """Append an event."""
        key = key_of(event)
        column = self.columns.get(key)
        if column is None:
            column = self.columns[key] = Column()
        column.add(event)

    def absorb(self, other: Table) -> None:
        """Append the values of another table, which came later."""
        for key, column in other.columns.items():
            self.columns.setdefault(key, Column()).extend(column)


@dataclass
class TableDifference:
    """The differences between two tables.

    Args:
        differing: (seq in a, seq in b) of the first values at each site that differ.
        keys: the sites of these.
        extra: by site, how many values only each run has (first run, second run).
        loose: (seq in a, seq in b) of the first values without a counterpart, where both runs have some.
        matched: digests of the values that both runs have, for the final digest.
        whole_sites: how many sites gave the same number of values in both runs.
    """

    differing: list[tuple[int, int]] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    extra: dict[Key, tuple[int, int]] = field(default_factory=dict)
    loose: list[tuple[int, int]] = field(default_factory=list)
    matched: bytes = b""
    whole_sites: int = 0


def compare_tables(a: Table, b: Table, only_moved: OnlyMoved | None = None) -> TableDifference:
    """Match the values of two runs, site by site and in order.

    Where a site gave the same number of values, the k-th is compared with the k-th; values of several threads
    are compared in any order. Where the numbers differ, values are matched by their digest, and the rest is
    extra.

    Args:
        a: the table of the first run.
        b: the table of the second run.
        only_moved: tells whether unequal columns are no difference; those are left out.
    """
    difference = TableDifference()
    for key in [*a.columns, *(key for key in b.columns if key not in a.columns)]:
        first, second = a.columns.get(key, Column()), b.columns.get(key, Column())
        same = first.contents() == second.contents()
        if not same and only_moved is not None and only_moved(key, (first, second)):
            continue
        if len(first) == len(second):
            difference.whole_sites += 1
            unequal = list(_first_unequal(first, second))
            difference.differing += unequal
            difference.keys += [key] * len(unequal)
            difference.matched += first.contents()
        else:
            _match_unequal_numbers(key, first, second, difference)
    return difference


def _first_unequal(a: Column, b: Column) -> Iterator[tuple[int, int]]:
    if a.contents() == b.contents():
        return
    if len(a.threads | b.threads) > 1:
        rows = _unordered_difference(a, b)
    else:
        rows = next(((i, i) for i in range(len(a)) if a.digest(i) != b.digest(i)), None)
    if rows is not None:
        yield a.seqs[rows[0]], b.seqs[rows[1]]


def _unordered_difference(a: Column, b: Column) -> tuple[int, int] | None:
    in_a, in_b = a.digests(), b.digests()
    only_a, only_b = Counter(in_a) - Counter(in_b), Counter(in_b) - Counter(in_a)
    if not only_a:
        return None
    return (
        next(i for i, digest in enumerate(in_a) if digest in only_a),
        next(j for j, digest in enumerate(in_b) if digest in only_b),
    )


def _match_unequal_numbers(key: Key, a: Column, b: Column, difference: TableDifference) -> None:
    numbers: dict[bytes, int] = {}
    codes_a, codes_b = ([numbers.setdefault(d, len(numbers)) for d in c.digests()] for c in (a, b))
    pairs = align(codes_a, codes_b)
    difference.extra[key] = (len(a) - len(pairs), len(b) - len(pairs))
    difference.matched += b"".join(a.digest(i) for i, _ in pairs)
    if min(difference.extra[key]):
        rows_a, rows_b = {i for i, _ in pairs}, {j for _, j in pairs}
        i = next(i for i in range(len(a)) if i not in rows_a)
        j = next(j for j in range(len(b)) if j not in rows_b)
        difference.loose.append((a.seqs[i], b.seqs[j]))


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
