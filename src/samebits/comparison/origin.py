"""Finds the origins of a difference by walking the data flow of two op-level records together."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.causes import Cause, OriginKind
from samebits.comparison import _findings
from samebits.comparison._alignment import Keyer
from samebits.comparison._contents import (
    SiteDraws,
    batch_sources,
    differing_view,
    made_by,
    relocated_view,
    same_outputs,
)
from samebits.comparison._data_flow import (
    Point,
    Writers,
    block_start,
    earlier_points,
    first_divergence,
    is_unread,
    read_points,
    same_contents,
    save_points,
    start_points,
    writers_of,
)
from samebits.comparison._draw_evidence import DrawEvidence
from samebits.comparison._generator_states import DrawBlame
from samebits.comparison._sites import site_key
from samebits.comparison._survey import last_steps
from samebits.comparison._threads import survey_runs
from samebits.comparison.changed_code import on_common_lines
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.lookup import Lookup
from samebits.comparison.ops import (
    accumulates,
    allocates,
    attaches_memory,
    differing_inputs,
    n_bytes,
    positions,
    read_inputs,
    reordered,
    written,
)
from samebits.comparison.results import OriginSearch
from samebits.records.kinds import EventKind, Role
from samebits.records.notes import Note, NoteCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from samebits.comparison._generator_states import Blame
    from samebits.comparison.lookup import Record
    from samebits.comparison.results import Finding, Origin
    from samebits.records.events import Event

_MOST_PAIRS = 1_000_000


def find_origins(
    a: Record,
    b: Record,
    excluded: Collection[str] = (),
    explained: Collection[tuple[Cause, str, int]] = (),
    until: float | None = None,
) -> OriginSearch:
    """Find the origins of the first difference between two op-level records.

    The search begins at each state tensor, read and save that differs in the first step with a difference. It
    follows the operations that made it back in both runs together, through inputs that differ, to operations
    whose inputs do not.

    Args:
        a: the first record.
        b: the second.
        excluded: names of state tensors that are left out.
        explained: cause, file and line of origins that are known already: draws of that cause at that line
            are no evidence for other origins.
        until: value of `time.monotonic` at which the search stops with what it has; None for no limit.
    """
    a, b = on_common_lines(a, b)
    survey = survey_runs(a, b, excluded, to_first=True)
    last = last_steps(a, b, survey)
    reads = read_points(a, b, survey)
    starts, one_sided = start_points(survey)
    keyer = Keyer(numbered=not survey.several_threads)
    lookup = Lookup(a, b, survey.first_span, last, keyer)
    unread = {name: point for name, point in starts if is_unread(lookup, point)}
    earlier = earlier_points(a, b)
    walk = Walk(lookup, [*reads, *earlier], survey.generators.lines(used_only=True), until)
    walk.run(
        [*(point for _, point in starts if point not in unread.values()), *reads, *save_points(a, b, survey)]
    )
    if walk.only_late:  # what was read before the call matters only where nothing else explains more
        walk.run(earlier)
    findings = walk.findings()
    if not findings and not unread:
        findings = one_sided or first_divergence(lookup, survey)
    drawn = DrawEvidence(lookup, survey, last, explained)
    shown = _consequences_last(_explained(group, drawn) for group in _groups(findings))
    return OriginSearch(
        shown,
        tuple(unread),
        tuple(_unread_notes(unread) + walk.notes),
        complete=walk.complete,
        behind=tuple(walk.behind),
    )


class Walk:
    """One search. Each pair of tensors is visited once, and each pair of events examined once.

    Pending work waits in lists: a chain of operations may be longer than Python's stack.

    Args:
        lookup: the records.
        reads: reads that differ. A Python value that differs after one of them may come from it. Then the
            read is followed, not the location where the value entered.
        hints: evidence for values that come from outside torch.
        until: value of `time.monotonic` at which the search stops with what it has; None for no limit.
    """

    def __init__(
        self,
        lookup: Lookup,
        reads: Iterable[Point],
        hints: Iterable[Evidence] = (),
        until: float | None = None,
    ) -> None:
        self._lookup = lookup
        self._until = until
        self._hints = tuple(hints)
        self._draws = SiteDraws(lookup)
        self._generators = DrawBlame(lookup)
        self._reads = [(point.seq_a, point.seq_b) for point in reads]
        self._queue: deque[Point] = deque()
        self._seen: set[Point] = set()
        self._pending: list[tuple[Event, Event]] = []
        self._examined: set[tuple[int, int]] = set()
        self._origins: list[Finding] = []
        self._late: list[Finding] = []
        self.notes: list[Note] = []
        self.complete = True
        self.behind: list[Finding] = []

    def run(self, starts: Iterable[Point]) -> None:
        """Visit everything that the starts lead to."""
        self._push(starts)
        while self._pending or self._queue:
            ended = self._ended()
            if ended is not None:
                self.complete = False
                self.notes.append(ended)
                return
            if self._pending:
                self._examine(*self._pending.pop())
            else:
                self._visit(self._queue.popleft())

    def _ended(self) -> Note | None:
        """Return a note on why the search must stop; None while it may go on."""
        if len(self._seen) + len(self._examined) > _MOST_PAIRS:
            return Note.of(NoteCode.SEARCH_BOUND, _MOST_PAIRS)
        if self._until is not None and time.monotonic() >= self._until:
            return Note.of(NoteCode.SEARCH_TIME)
        return None

    @property
    def only_late(self) -> bool:
        """Tell whether all that was found are values that may come from a read or a draw that differs."""
        return bool(self._late) and not self._origins

    def findings(self) -> list[Finding]:
        """Return the origins."""
        if self._origins:
            self.behind = self._late
            for late in self._late:
                note = Note.of(NoteCode.LATE_VALUE, late.origin.site)
                self.notes += [] if note in self.notes else [note]
            return self._origins
        return self._late

    def _push(self, points: Iterable[Point]) -> None:
        for point in points:
            if point not in self._seen:
                self._seen.add(point)
                self._queue.append(point)

    def _blame(self, finding: Finding) -> None:
        """Save an origin, apart if a read or a draw that differs may explain it."""
        if not finding.enters:
            self._origins.append(finding)
            return
        if finding.cause == Cause.UNKNOWN:
            finding = finding.with_evidence(*self._hints)
        # Values that torch draws and reads internally, such as a sampler's order, are not recorded as reads,
        # but the draw is, at the same line of user code.
        event = None if finding.origin.events[0] is None else self._lookup.a.get(finding.origin.events[0])
        drawn, new = (False, []) if event is None else self._draws.before(event)
        self._request(new)
        later = drawn or any(self._behind(finding.origin, read) for read in self._reads)
        (self._late if later else self._origins).append(finding)

    @staticmethod
    def _behind(origin: Origin, read: tuple[int, int]) -> bool:
        return all(seq is None or seq > before for seq, before in zip(origin.events, read, strict=True))

    def _visit(self, point: Point) -> None:
        a, b = self._lookup.a.get(point.seq_a), self._lookup.b.get(point.seq_b)
        if a is None or b is None:
            self.complete = False
            self.notes.append(Note.of(NoteCode.EVENT_MISSING))
            return
        if a.digests[point.position_a] == b.digests[point.position_b]:
            return
        links = point.links(self._lookup)
        if links is None:
            self._blame(_findings.lost(a, b, EvidenceCode.SOURCE_NOT_RECORDED))
            return
        self._follow(point, (a, b))

    def _follow(self, point: Point, consumers: tuple[Event, Event]) -> None:
        """Walk the writes to one memory back to those that made the difference."""
        explained = False
        for writers in writers_of(self._lookup, point):
            if writers.ended:
                break
            if not writers.paired:
                if not explained:
                    self._differing_writers(consumers, writers)
                return
            a, b = writers.pair
            if allocates(a):
                if not explained:
                    self._allocated(point, consumers, writers)
                return
            if same_contents(writers):
                continue
            explained = True
            self._request([(a, b)])
            info = consumers[0].tensors[point.position_a]
            if any(n_bytes(a.tensors[i]) >= n_bytes(info) for i in written(a, writers.memories[0])):
                return
        if not explained:
            self._entered(point, consumers)

    def _entered(self, point: Point, consumers: tuple[Event, Event]) -> None:
        """Find the origin of a tensor whose memory nothing recorded wrote."""
        maker, view = made_by(self._lookup, point), differing_view(self._lookup, point)
        if view is not None:
            self._blame(_findings.argument(*view, inputs_equal=not differing_inputs(*view)))
        elif maker is None:
            self._blame(_findings.outside(*consumers, point, more=self._unrecorded()))
        elif same_outputs(*maker):
            self._blame(_findings.other_output(*consumers, maker[0]))
        else:
            self._request([maker])

    def _unrecorded(self) -> tuple[Evidence, ...]:
        first = next(self._lookup.a.record.events((EventKind.OP,)), None)
        if first is None or first.step == 0:
            return ()
        return (Evidence.of(EvidenceCode.NOT_RECORDED_BEFORE, first.step),)

    def _allocated(self, point: Point, consumers: tuple[Event, Event], writers: Writers) -> None:
        a, b = writers.pair
        view = relocated_view(self._lookup, point)
        if a.arguments != b.arguments:
            self._blame(_findings.argument(a, b, inputs_equal=True))
        elif view is not None:
            self._blame(_findings.argument(*view, inputs_equal=True))
        elif same_contents(writers) or self._shown_outside(writers.memories, a, consumers):
            self._blame(_findings.outside(*consumers, point))
        else:
            self._blame(_findings.uninitialized(a, b, consumers[0]))

    def _shown_outside(self, memories: tuple[int, int], made: Event, consumers: tuple[Event, Event]) -> bool:
        """Tell whether NumPy had access to a memory, and so could write it."""
        reads = self._lookup.a.record.events(
            (EventKind.READ, EventKind.EARLIER), made.step, consumers[0].step
        )
        return any(
            event.op == "numpy" and made.seq < event.seq < consumers[0].seq
            and any(link.memory == memories[0] for link in event.links)
            for event in reads
        )  # fmt: skip

    def _request(self, pairs: Iterable[tuple[Event, Event]]) -> None:
        """Have pairs of events examined, once each."""
        for a, b in pairs:
            if (a.seq, b.seq) not in self._examined:
                self._examined.add((a.seq, b.seq))
                self._pending.append((a, b))

    def _examine(self, a: Event, b: Event) -> None:
        """Compare the inputs of two writes that gave different contents."""
        if a.kind != EventKind.OP:
            self._examine_batch(a, b)
            return
        if attaches_memory(a):
            position = positions(a, Role.OUT)[0]
            self._blame(_findings.outside(a, b, Point(a.seq, position, b.seq, position)))
            return
        differing = differing_inputs(a, b)
        if len(differing) > 1:
            threads = reordered(self._lookup, a, b)
            if threads is not None:
                self._blame(_findings.order(a, b, threads))
                return
        self._push(Point(a.seq, i, b.seq, j) for i, j in differing)
        if a.arguments != b.arguments or len(read_inputs(a)) != len(read_inputs(b)):
            self._blame(_findings.argument(a, b, inputs_equal=not differing))
        elif not self._examine_generator(a, b) and not differing:
            self._blame(_findings.kernel(self._lookup, a, b))

    def _examine_batch(self, a: Event, b: Event) -> None:
        """Follow a batch to the events that made its tensors; without any, the batch is the origin."""
        linked, makers = batch_sources(self._lookup, a, b)
        self._push(linked)
        self._request(makers if not linked else ())
        if not linked and not makers:
            self._blame(_findings.batch(a, b))

    def _examine_generator(self, a: Event, b: Event) -> bool:
        """Follow the generator of an op if its state differed, and tell whether it did."""
        pairs = list(zip(positions(a, Role.RNG), positions(b, Role.RNG), strict=False))
        differing = [i for i, j in pairs if a.digests[i] != b.digests[j]]
        for i in differing:
            blame = self._generators.blame(a, b, a.tensors[i].name)
            points = [Point(blame.a.seq, p, blame.b.seq, q) for p, q in differing_inputs(blame.a, blame.b)]
            if blame.inputs and points:
                self._push(points)
            elif blame.origin_kind == OriginKind.CONTROL_FLOW:
                self._blame(self._extra_draw(blame))
            else:
                self._blame(_findings.draw(blame))
        return bool(differing)

    def _extra_draw(self, blame: Blame) -> Finding:
        lookup = self._lookup
        a = blame.a if lookup.partner_in_b(blame.a) is None else None
        b = blame.b if a is None and lookup.partner_in_a(blame.b) is None else None
        if a is None and b is None:
            return _findings.draw(blame)
        start = block_start(lookup, a, b)
        diagnosis = replace(start.diagnosis, evidence=blame.evidence + start.diagnosis.evidence)
        return replace(start, diagnosis=diagnosis)

    def _differing_writers(self, consumers: tuple[Event, Event], writers: Writers) -> None:
        """Find out why different operations made a tensor."""
        a, b = writers.events
        lookup, reader = self._lookup, consumers[0]
        x_b = None if a is None else lookup.b.get(_or_none(lookup.partner_in_b(a)))
        x_a = None if b is None else lookup.a.get(_or_none(lookup.partner_in_a(b)))
        threads = _threads(reader, a, b)
        stayed = bool(a and b and x_a and x_b and x_b.seq < b.seq and x_a.seq > a.seq)  # the write of b moved
        wrote_a = bool(x_a and written(x_a, writers.memories[0]))
        wrote_b = bool(x_b and written(x_b, writers.memories[1]))
        # In one thread nothing has moved if the other run lacks an op, or has it on another memory.
        moved = len(threads) > 1 or ((wrote_b or not a) and (wrote_a or not b))
        if a and x_b and wrote_b and moved and not stayed:
            self._blame(_findings.order(a, x_b, _writing_threads(reader, a, b), reader))
        elif b and x_a and wrote_a and moved:
            self._blame(_findings.order(x_a, b, _writing_threads(reader, b, a), reader))
        elif a and b and x_a and x_b and len(threads) > 1 and self._both_accumulate(a, b):
            self._blame(_findings.order(a, b, threads, reader))
        elif (a is None or x_b) and (b is None or x_a):
            self._blame(_findings.selection(*consumers, (a, b), threads))
        else:
            self._blame(block_start(lookup, a if a and not x_b else None, b if b and not x_a else None))

    def _both_accumulate(self, a: Event, b: Event) -> bool:
        return accumulates(self._lookup.a, a) and accumulates(self._lookup.b, b)


def _threads(reader: Event, *writers: Event | None) -> set[str]:
    """Return the threads of the writers, and the reader's too if the writers share one."""
    threads = {event.thread for event in writers if event is not None}
    return threads if len(threads) > 1 else threads | {reader.thread}


def _writing_threads(reader: Event, write: Event, other: Event | None) -> set[str]:
    """Return the threads of writes that compete: by the same line of code."""
    competes = other is not None and (other.op, site_key(other.site)) == (write.op, site_key(write.site))
    return _threads(reader, write, other if competes else None)


def _or_none(seq: int | None) -> int:
    return -1 if seq is None else seq


def _unread_notes(unread: dict[str, Point]) -> list[Note]:
    return [Note.of(NoteCode.UNREAD_MEMORY, name) for name in unread]


def _groups(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Group findings by op and site, in the order of the second run."""
    by_op_and_site: dict[object, list[Finding]] = {}
    for finding in sorted(findings, key=lambda each: _position(each.origin)):
        by_op_and_site.setdefault((finding.origin.op, finding.origin.site), []).append(finding)
    return list(by_op_and_site.values())


def _explained(group: list[Finding], drawn: DrawEvidence) -> Finding:
    """Explain the first finding of a group by draws; if that leaves it open, by all draws on its line."""
    finding = drawn.explain(_merged(group))
    return finding if len(group) == 1 or finding.cause != Cause.UNKNOWN else drawn.with_those_on_line(finding)


def _consequences_last(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Drop findings that are consequences of different control flow, and put possible consequences last.

    Another order in one thread may be a mere consequence of a race, or of different control flow. It is one
    where it comes after these: then other operations made what an op takes.
    """
    listed = list(findings)
    diverged = [
        at for at, finding in enumerate(listed) if finding.origin.origin_kind == OriginKind.CONTROL_FLOW
    ]
    if diverged:
        listed = [
            finding for at, finding in enumerate(listed) if at < diverged[0] or not _is_mere_order(finding)
        ]
    if diverged or any(finding.cause == Cause.RACE for finding in listed):
        listed.sort(key=_is_mere_order)
    return tuple(listed)


def _is_mere_order(finding: Finding) -> bool:
    return finding.origin.origin_kind == OriginKind.ORDER and finding.cause == Cause.UNKNOWN


def _merged(group: list[Finding]) -> Finding:
    if len(group) == 1:
        return group[0]
    return group[0].with_evidence(Evidence.of(EvidenceCode.SUCH_EVENTS, len(group)))


def _position(origin: Origin) -> int:
    first, second = origin.events
    return second if second is not None else first if first is not None else -1
