"""The way of values between operations, and where two runs diverge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from samebits.causes import OriginKind
from samebits.comparison import _findings
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.ops import allocates, differing_inputs, only_copies, previous_writer, written
from samebits.comparison.steps import Table, compare_tables
from samebits.records.events import END, NO_WRITER
from samebits.records.kinds import EventKind, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from samebits.comparison._alignment import Alignment
    from samebits.comparison._survey import Survey
    from samebits.comparison.lookup import EventCache, Lookup, Record
    from samebits.comparison.results import Finding
    from samebits.records.events import Event, Link


class Point(NamedTuple):
    """A tensor of an event in each run.

    Args:
        seq_a: the event of the first run.
        position_a: the position of the tensor in it.
        seq_b: the event of the second run.
        position_b: the position of the tensor in it.
    """

    seq_a: int
    position_a: int
    seq_b: int
    position_b: int

    def links(self, lookup: Lookup) -> tuple[Link, Link] | None:
        """Return where the contents came from in each run; None when that is not recorded."""
        a, b = lookup.a.get(self.seq_a), lookup.b.get(self.seq_b)
        if a is None or b is None or self.position_a >= len(a.links) or self.position_b >= len(b.links):
            return None
        return a.links[self.position_a], b.links[self.position_b]


_MOST_WRITES = 10_000


@dataclass(frozen=True)
class Writers:
    """The next earlier write to a memory in each run.

    Args:
        events: the writes; None where there is none.
        memories: the serial number of the memory in each run.
        paired: whether they are the same event.
    """

    events: tuple[Event | None, Event | None]
    memories: tuple[int, int]
    paired: bool

    @property
    def ended(self) -> bool:
        """True if neither run has an earlier write."""
        return self.events == (None, None)

    @property
    def pair(self) -> tuple[Event, Event]:
        """Both writes, where they are paired."""
        a, b = self.events
        if a is None or b is None:
            raise ValueError("these writers are not paired")
        return a, b


def same_contents(writers: Writers) -> bool:
    """Tell whether two paired writes left the same contents in the memory."""
    ours, theirs = (written(event, m) for event, m in zip(writers.pair, writers.memories, strict=True))
    a, b = writers.pair
    return [a.digests[i] for i in ours] == [b.digests[i] for i in theirs]


class _Side:
    """One run's chain of writes to the memory that a tensor lives on."""

    def __init__(self, cache: EventCache, seq: int, position: int) -> None:
        consumer = cache.get(seq)
        if consumer is None:
            raise ValueError("the consumer is not in the record")
        link = consumer.links[position]
        self._cache = cache
        self.memory = link.memory
        self._info = consumer.tensors[position]
        self._digest = consumer.digests[position]
        self.writer = None if link.writer == NO_WRITER else cache.get(link.writer)

    def back(self) -> None:
        """Go to the write before."""
        if self.writer is not None:
            before = previous_writer(self.writer, self.memory)
            self.writer = None if before == NO_WRITER else self._cache.get(before)

    def explains(self) -> bool:
        """Tell whether the write can have made what the consumer read.

        A tensor of the same dtype and shape that the write left in the memory must have the consumer's
        contents. Otherwise it wrote another part, or the address now belongs to memory made elsewhere.
        """
        if self.writer is None:
            return True
        written_tensors = [(self.writer.tensors[i], i) for i in written(self.writer, self.memory)]
        form = (self._info.dtype, self._info.shape)
        alike = [i for info, i in written_tensors if (info.dtype, info.shape) == form]
        return not alike or any(self.writer.digests[i] == self._digest for i in alike)


def writers_of(lookup: Lookup, point: Point) -> Iterator[Writers]:
    """Yield the writes to the memory of a tensor, the last first, paired while both runs have the same ones.

    A write that only one run has is skipped if it did not make the tensor's contents. The last value is ended
    or not paired.
    """
    a = _Side(lookup.a, point.seq_a, point.position_a)
    b = _Side(lookup.b, point.seq_b, point.position_b)
    for _ in range(_MOST_WRITES):
        events, memories = (a.writer, b.writer), (a.memory, b.memory)
        if a.writer is not None and b.writer is not None and lookup.partners(a.writer, b.writer):
            yield Writers(events, memories, paired=True)
            a.back()
            b.back()
        elif a.writer is None and b.writer is None:
            break
        elif not a.explains():
            a.back()
        elif not b.explains():
            b.back()
        else:
            yield Writers(events, memories, paired=False)
            return
    yield Writers((None, None), (a.memory, b.memory), paired=False)


def is_unread(lookup: Lookup, start: Point) -> bool:
    """Tell whether a state tensor differs only by memory as it was allocated, at most copied since.

    Args:
        lookup: the records.
        start: the tensor, in its `step` event.
    """
    if start.links(lookup) is None:
        return False
    pending, seen = [start], {start}
    while pending:
        sources = _sources(lookup, pending.pop())
        if sources is None:
            return False
        pending += [point for point in sources if point not in seen]
        seen.update(sources)
    return True


def _sources(lookup: Lookup, point: Point) -> list[Point] | None:
    """Return the differing tensors that a tensor was copied from; None when it is more than a copy."""
    sources: list[Point] = []
    for writers in writers_of(lookup, point):
        if not writers.paired:
            return None
        a, b = writers.pair
        if allocates(a):
            return None if same_contents(writers) or a.arguments != b.arguments else sources
        if same_contents(writers):
            continue
        if not only_copies(a) or a.arguments != b.arguments:
            return None
        sources += [Point(a.seq, i, b.seq, j) for i, j in differing_inputs(a, b)]
        if _renews(a, writers.memories[0]):
            return sources
    return None


def _renews(event: Event, memory: int) -> bool:
    """Tell whether an op made its memory anew, so that nothing in it is older."""
    return all(
        link.memory != memory for i, link in enumerate(event.links) if event.tensors[i].role == Role.IN
    )


def block_start(lookup: Lookup, a: Event | None, b: Event | None) -> Finding:
    """Make a finding of the first event in a stretch, around an event, that only one run has.

    Args:
        lookup: the records.
        a: an event that only the first run has, if any.
        b: an event that only the second run has, if any.
    """
    event = a or b
    if event is None:
        raise ValueError("a divergence needs an event that one run does not have")
    alignment = lookup.alignment(event.step if a else lookup.step_in_a(event.step))
    if alignment is None:
        return _findings.lost(a, b, EvidenceCode.TOO_LONG_TO_ALIGN)
    if a is None:
        alignment = alignment.mirrored()
    if event.seq not in alignment.a.index:
        return _findings.lost(a, b, EvidenceCode.NOT_IN_STEP)
    rows = _block(alignment, event)
    start = (lookup.a if a else lookup.b).get(alignment.a.seqs[rows[0]])
    twin = _meanwhile(alignment, rows[0], lookup.b if a else lookup.a)
    sides = (start, twin) if a else (twin, start)
    return _findings.control_flow(*sides, of_second=a is None)


def first_divergence(lookup: Lookup, survey: Survey) -> list[Finding]:
    """Find the first event that only one run has, where the numbers of steps or values differ."""
    later = survey.boundaries and not survey.several_threads
    alignment = lookup.alignment(survey.boundaries + survey.first_span[0] if later else 0)
    if alignment is None:
        return []
    longer_b = survey.totals[1] > survey.totals[0]
    for in_b in (longer_b, not longer_b):
        cache = lookup.b if in_b else lookup.a
        event = _first_lone(alignment.mirrored() if in_b else alignment, cache)
        if event is not None:
            return [block_start(lookup, None if in_b else event, event if in_b else None)]
    return []


def _first_lone(alignment: Alignment, cache: EventCache) -> Event | None:
    """Return the first event that only the first run has; events at the end of a script do not count."""
    for seq in alignment.a.seqs:
        event = None if seq in alignment.to_b else cache.get(seq)
        if event is not None and event.kind != EventKind.RNG and event.op != END:
            return event
    return None


def _block(alignment: Alignment, event: Event) -> list[int]:
    """Return the rows around an event, of the first run and of one thread, that have no partner."""
    stream, at = alignment.a, alignment.a.index[event.seq]

    def run(rows: range) -> list[int]:
        block = []
        for row in rows:
            if stream.threads[row] == event.thread:
                if stream.seqs[row] in alignment.to_b:
                    break
                block.append(row)
        return block

    return [*reversed(run(range(at - 1, -1, -1))), at, *run(range(at + 1, len(stream.seqs)))]


def _meanwhile(alignment: Alignment, row: int, cache: EventCache) -> Event | None:
    """Return what the second run did at the same point: the event after the last common one."""
    mine, other = alignment.a, alignment.b
    thread = mine.threads[row]
    before = next((i for i in range(row - 1, -1, -1) if mine.threads[i] == thread), None)
    first = 0 if before is None else other.index[alignment.to_b[mine.seqs[before]]] + 1
    for i in range(first, len(other.seqs)):
        event = cache.get(other.seqs[i]) if other.threads[i] == thread else None
        if event is not None and event.kind != EventKind.RNG and event.op != END:
            return event
    return None


def start_points(survey: Survey) -> tuple[list[tuple[str, Point]], list[Finding]]:
    """Return the state tensors that differ, and findings about those that only one run has."""
    starts, one_sided = [], []
    for pair in survey.first.state.pairs if survey.first else ():
        if pair.a is not None and pair.b is not None:
            starts.append(
                (pair.name, Point(pair.a.event.seq, pair.a.position, pair.b.event.seq, pair.b.position))
            )
        else:
            line = Evidence.of(EvidenceCode.ONE_SIDED_TENSOR, pair.only_in, pair.role, pair.name, pair.info)
            a, b = (tensor.event if tensor else None for tensor in (pair.a, pair.b))
            one_sided.append(_findings.finding(a, b, OriginKind.CONTROL_FLOW, evidence=(line,)))
    return starts, one_sided


def read_points(a: Record, b: Record, survey: Survey) -> list[Point]:
    """Return the reads that differ."""
    return [point for point, kind in _output_points(a, b, survey) if kind == EventKind.READ]


def earlier_points(a: Record, b: Record) -> list[Point]:
    """Return the reads before the call that is judged, if there is one, that differ."""
    tables = Table(), Table()
    for record, table in zip((a, b), tables, strict=True):
        for event in record.events((EventKind.EARLIER,)):
            table.add(event)
    return list(_differing_points(a, b, compare_tables(*tables).differing))


def save_points(a: Record, b: Record, survey: Survey) -> list[Point]:
    """Return the saves that differ."""
    return [point for point, kind in _output_points(a, b, survey) if kind == EventKind.SAVE]


def _output_points(a: Record, b: Record, survey: Survey) -> Iterator[tuple[Point, EventKind]]:
    pairs = survey.first.outputs.differing if survey.first else [survey.unmatched] if survey.unmatched else []
    for point in _differing_points(a, b, pairs):
        yield point, a.event(point.seq_a).kind


def _differing_points(a: Record, b: Record, pairs: Iterable[tuple[int, int]]) -> Iterator[Point]:
    for seq_a, seq_b in pairs:
        ours, theirs = a.event(seq_a), b.event(seq_b)
        for i, (x, y) in enumerate(zip(ours.digests, theirs.digests, strict=False)):
            if x != y:
                yield Point(seq_a, i, seq_b, i)
