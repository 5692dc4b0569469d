"""The questions that the comparison asks of two records."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

from samebits.comparison._alignment import Alignment, Keyer, align_events
from samebits.comparison._contents import Nearby
from samebits.comparison._generator_states import SeedLog
from samebits.errors import SamebitsError
from samebits.records.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from samebits.records.events import Event, RunInfo


class Record(Protocol):
    """A record that can be read: `samebits.records.RecordReader`, or a list of events in a test."""

    @property
    def info(self) -> RunInfo:
        """The facts about the run as a whole."""
        ...

    def events(
        self, kinds: Sequence[EventKind] = (), first_step: int | None = None, last_step: int | None = None
    ) -> Iterator[Event]:
        """Yield events in order, of some kinds and steps."""
        ...

    def event(self, seq: int) -> Event:
        """Return one event; raises `SamebitsError` or `LookupError` when there is none."""
        ...


_CACHED_EVENTS = 100_000  # of each run
_ALIGNED_EVENTS = 2_000_000  # of one step of each run


class EventCache:
    """The events of one record by number, by contents and by what they seed; recent ones are cached.

    Args:
        record: the record.
        last_step: the last step to examine; None for all.
    """

    def __init__(self, record: Record, last_step: int | None = None) -> None:
        self.record = record
        self._events: OrderedDict[int, Event] = OrderedDict()
        self.nearby = Nearby(self.get)
        self.seed_log = SeedLog(record, last_step)

    def get(self, seq: int) -> Event | None:
        """Return the event with a number, None when the record does not have it."""
        event = self._events.get(seq)
        if event is None:
            try:
                event = self.record.event(seq)
            except (SamebitsError, LookupError):
                return None
            self._cache(event)
        else:
            self._events.move_to_end(seq)
        return event

    def last_that_gave(self, digest: bytes, before: int) -> Event | None:
        """Return the last op or batch shortly before an event that gave some contents."""
        seq = self.nearby.last_that_gave(digest, before)
        return None if seq is None else self.get(seq)

    def step(self, first: int, last: int) -> Iterator[Event]:
        """Yield the events of some steps in order, except draws."""
        for event in self.record.events(first_step=first, last_step=last):
            if event.kind != EventKind.DRAW:  # a draw may be in one run only, and its value differs anyhow
                self._cache(event)
                yield event

    def _cache(self, event: Event) -> None:
        self._events[event.seq] = event
        if len(self._events) > _CACHED_EVENTS:
            self._events.popitem(last=False)


class Lookup:
    """Two records, side by side.

    Args:
        a: the first.
        b: the second.
        first_span: last step number of the first step of each run; later steps correspond from there on.
        last_steps: the last step of each run to examine.
        keyer: makes the keys by which events are recognised.
    """

    def __init__(
        self,
        a: Record,
        b: Record,
        first_span: tuple[int, int],
        last_steps: tuple[int, int],
        keyer: Keyer | None = None,
    ) -> None:
        self.a = EventCache(a, last_steps[0])
        self.b = EventCache(b, last_steps[1])
        self._first = first_span
        self._last = last_steps
        self._alignments: dict[int, Alignment | None] = {}
        self._keyer = keyer or Keyer()

    def alignment(self, step: int) -> Alignment | None:
        """Align a step of the first run with that of the second; None for a step that is too long."""
        first, _ = self._first
        key = -1 if step <= first else step
        if key not in self._alignments:
            self._alignments[key] = self._align(step)
        return self._alignments[key]

    def partner_in_b(self, event: Event) -> int | None:
        """Return the number of the event of the second run that is this event of the first."""
        alignment = self.alignment(event.step)
        return None if alignment is None else alignment.to_b.get(event.seq)

    def partner_in_a(self, event: Event) -> int | None:
        """Return the number of the event of the first run that is this event of the second."""
        alignment = self.alignment(self.step_in_a(event.step))
        return None if alignment is None else alignment.to_a.get(event.seq)

    def step_in_a(self, step: int) -> int:
        """Return the step of the first run that corresponds to one of the second."""
        first_a, first_b = self._first
        return min(step, first_a) if step <= first_b else step - first_b + first_a

    def partners(self, a: Event, b: Event) -> bool:
        """Tell whether two events are the same event, or at least did the same to the same contents."""
        ours, theirs = self._keyer.keys(a), self._keyer.keys(b)
        if ours.whole == theirs.whole or ours.given == theirs.given:
            return True
        alignment = self.alignment(a.step)
        if alignment is None:  # too long to align: the same location in the program must do
            return ours.loose == theirs.loose
        return alignment.to_b.get(a.seq) == b.seq

    def step_in_b(self, step: int) -> int:
        """Return the first step of the second run that corresponds to one of the first."""
        first_a, first_b = self._first
        return 0 if step <= first_a else step - first_a + first_b

    def _align(self, step: int) -> Alignment | None:
        first_a, first_b = self._first
        if step <= first_a:
            spans = ((0, min(first_a, self._last[0])), (0, min(first_b, self._last[1])))
        else:
            spans = ((step, step), (step - first_a + first_b, step - first_a + first_b))
        a, b = self.a.step(*spans[0]), self.b.step(*spans[1])
        try:
            return align_events(_bounded(a), _bounded(b), self._keyer)
        except OverflowError:
            return None


def _bounded(events: Iterable[Event]) -> Iterator[Event]:
    for count, event in enumerate(events):
        if count >= _ALIGNED_EVENTS:
            raise OverflowError
        yield event
