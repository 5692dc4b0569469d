"""Finds the draws that gave other values in two runs."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from samebits.causes import Cause, cause_of_draw, specification_of
from samebits.comparison._sites import site_key
from samebits.comparison._survey import last_steps
from samebits.comparison._threads import survey_runs
from samebits.comparison.changed_code import on_common_lines
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.results import Source
from samebits.recording.sites import LibraryCall
from samebits.records.events import UNUSED, WORKER, Event
from samebits.records.kinds import EventKind
from samebits.rng.sources import LIBRARIES

if TYPE_CHECKING:
    from collections.abc import Collection

    from samebits.comparison.lookup import Record

_MOST_DRAWS = 200_000  # of each run
_REST = re.compile(r"and \d+ more")
# Entropy for a new state. Other draws of the same libraries come from a state, and show which one it was.
_FRESH = tuple(draw for library in LIBRARIES for draw in library.fresh)
_QUEUES = ("queue.", "multiprocessing.Queue", "multiprocessing.SimpleQueue")


@dataclass(frozen=True)
class DrawPair:
    """The same draw of both runs, with another value in each.

    Args:
        a: in the first run.
        b: in the second.
    """

    a: Event
    b: Event

    @property
    def cause(self) -> Cause:
        """The cause that the draw would be."""
        return cause_of_draw(self.a.op)

    @property
    def source(self) -> Source:
        """The draw, as a finding names it."""
        library, in_worker = LibraryCall.from_text(self.a.module), self.a.thread.startswith(WORKER)
        return Source(self.a.op, self.a.site, self.cause, library, in_worker)

    @property
    def generator(self) -> str:
        """The library whose global generator was in another state; empty for any other draw."""
        return "" if self.fresh else specification_of(self.cause).library

    @property
    def fresh(self) -> bool:
        """True if a generator was seeded with it: everything drawn from that generator then depends on it."""
        return self.a.op.startswith(_FRESH)

    @property
    def unseeded(self) -> bool:
        """True if it comes from a generator: its effect may show many steps later."""
        return bool(specification_of(self.cause).library)

    @property
    def unwritten(self) -> bool:
        """True if it is memory with its former contents, which differ often and seldom matter."""
        return self.cause == Cause.UNINITIALIZED

    @property
    def weighty(self) -> bool:
        """True if scripts hardly ever take it for names and logs alone."""
        pattern = specification_of(self.cause).weighty_draws
        return pattern is not None and re.match(pattern, self.a.op) is not None

    def evidence(self) -> Evidence:
        """Return the evidence that the draw gives."""
        what = self.a.op, self.a.site
        if self.generator:
            return Evidence.of(EvidenceCode.GENERATOR_DIFFERED, *what, self.generator)
        if self.fresh:
            return Evidence.of(EvidenceCode.SEED_FROM_ENTROPY, *what)
        if self.unwritten:
            return Evidence.of(EvidenceCode.MEMORY_UNWRITTEN, *what)
        if self.cause == Cause.RACE:
            return Evidence.of(EvidenceCode.ORDER_GIVEN, *what)
        texts = self.a.arguments, self.b.arguments
        shown = texts if all(texts) and not _REST.fullmatch(texts[0]) else ()
        return Evidence.of(EvidenceCode.VALUE_GIVEN, *what, self.cause == Cause.THREAD_COUNT, shown)


def differing_draws(
    records: tuple[Record, Record], first_span: tuple[int, int], last_steps: tuple[int, int]
) -> list[DrawPair]:
    """Pair the draws of two runs by source, line and order within a step; return those with other values.

    A draw that only one run made is no difference.

    Args:
        records: the runs.
        first_span: last step number of the first step of each run; later steps correspond from there on.
        last_steps: the last step of each run to examine.
    """
    rows: dict[object, deque[Event]] = defaultdict(deque)
    for event in _draws(records[1], last_steps[1]):
        rows[_key(event, first_span[1])].append(event)
    pairs = []
    for event in _draws(records[0], last_steps[0]):
        waiting = rows.get(_key(event, first_span[0]))
        if waiting:
            twin = waiting.popleft()
            if twin.digests != event.digests:
                pairs.append(DrawPair(event, twin))
    return _only_reordered(pairs, records, last_steps)


def _only_reordered(
    pairs: list[DrawPair], records: tuple[Record, Record], last_steps: tuple[int, int]
) -> list[DrawPair]:
    """Drop items taken from queues that the other run did not take at another position.

    Their contents differ, so the reason is where the contents came from.
    """
    ops = {pair.a.op for pair in pairs if pair.a.op.startswith(_QUEUES)}
    if not ops:
        return pairs
    taken = [
        {(event.op, event.digests) for event in _draws(record, last) if event.op in ops}
        for record, last in zip(records, last_steps, strict=True)
    ]
    return [
        pair
        for pair in pairs
        if pair.a.op not in ops
        or (pair.b.op, pair.b.digests) in taken[0]
        or (pair.a.op, pair.a.digests) in taken[1]
    ]


def _key(event: Event, first: int) -> object:
    rest = event.arguments if _REST.fullmatch(event.arguments) else ""
    return event.op, site_key(event.site), max(event.step - first, 0), rest


def _draws(record: Record, last_step: int) -> list[Event]:
    events: list[Event] = []
    for event in islice(record.events((EventKind.DRAW,), last_step=last_step), _MOST_DRAWS):
        if event.arguments == UNUSED:
            source = event.op, event.site, event.thread
            drawn = range(len(events) - 1, -1, -1)
            row = next((i for i in drawn if (events[i].op, events[i].site, events[i].thread) == source), None)
            if row is not None:
                del events[row]
        else:
            events.append(event)
    return events


MOST_SOURCES = 12


def draws_before(a: Record, b: Record, excluded: Collection[str] = ()) -> tuple[Source, ...]:
    """Return the sources whose draws differ up to the first step with a difference, the last drawn first.

    Sources that gave other values also in earlier steps, whose results were the same, come last.

    Args:
        a: the first record, of any level.
        b: the second.
        excluded: names of state tensors that are left out.
    """
    a, b = on_common_lines(a, b)
    survey = survey_runs(a, b, excluded, to_first=True)
    pairs = differing_draws((a, b), survey.first_span, last_steps(a, b, survey))
    first = survey.first.a.first if survey.first is not None and not survey.several_threads else 0
    early = {(pair.a.op, site_key(pair.a.site)) for pair in pairs if pair.a.step < first}
    sources: dict[object, Source] = {}
    for pair in sorted(pairs, key=lambda pair: -pair.a.seq):
        sources.setdefault((pair.a.op, site_key(pair.a.site)), pair.source)
    ranked = sorted(sources, key=lambda key: key in early)
    return tuple(sources[key] for key in ranked[:MOST_SOURCES])
