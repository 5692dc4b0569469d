"""Values that one run keeps and another is given: the rules, and the events of a record that match them."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from samebits.records.kinds import EventKind, Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from samebits._runtime.frames import Site
    from samebits.records.events import Event

_MOST_BYTES = 256 << 20
EventKey = tuple[EventKind, str, tuple[str, int], tuple[str, int]]
"""Kind, op, file and line, file and line of the forward."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Events of one line of the script, whose values are kept in one run and put in place in another.

    Args:
        kind: kind of the events.
        op: op of the events.
        file: file of their site, empty for none.
        line: line of their site.
        forward_file: for backward ops, file of the line whose forward made them.
        forward_line: that line.
        part: the part that is kept: `out` (what an op gave or wrote), `in` (what it read, at `positions`),
            `state` (of the generator that it drew from, or that was seeded), `value` (the tensors of any
            other event), or `draw` (what the op draws after a seeding; it is only compared).
        positions: which tensors of the event are meant by `in`.
        replaces: whether values are put in place; else they are only kept, in both runs.
    """

    kind: EventKind
    op: str
    file: str = ""
    line: int = 0
    forward_file: str = ""
    forward_line: int = 0
    part: str = "out"
    positions: tuple[int, ...] = ()
    replaces: bool = True

    @property
    def key(self) -> EventKey:
        """The key that its events share."""
        return self.kind, self.op, (self.file, self.line), (self.forward_file, self.forward_line)


@dataclass(frozen=True, slots=True)
class Substitution:
    """The values that a run keeps or gets.

    Args:
        rules: at which events.
        source: the record that kept values; empty in the run that is to keep them.
        first_step: events of earlier steps are left alone; seedings are not.
        most_bytes: the most that is kept.
    """

    rules: tuple[Rule, ...]
    source: str = ""
    first_step: int = 0
    most_bytes: int = _MOST_BYTES

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Substitution:
        """Read what `dataclasses.asdict` gave, by way of JSON."""
        rules = [
            Rule(**{**rule, "kind": EventKind(rule["kind"]), "positions": tuple(rule["positions"])})
            for rule in fields["rules"]
        ]
        return cls(**{**fields, "rules": tuple(rules)})


class Matcher:
    """Counts the events that rules match, for each thread separately.

    Args:
        substitution: the rules.
    """

    def __init__(self, substitution: Substitution) -> None:
        self._first_step = substitution.first_step
        self._rules: dict[EventKey, list[int]] = defaultdict(list)
        for number, rule in enumerate(substitution.rules):
            self._rules[rule.key].append(number)
        self._counts: dict[tuple[int, str], int] = defaultdict(int)

    def match(self, key: EventKey, thread: str, step: int) -> list[tuple[int, int]]:
        """Return the rules that an event falls under, each with the number of such events before it."""
        if step < self._first_step and key[0] != EventKind.RNG:
            return []
        matches = []
        for number in self._rules.get(key, ()):
            matches.append((number, self._counts[number, thread]))
            self._counts[number, thread] += 1
        return matches


class CapturingRecord(Protocol):
    """**Protocol:** a record that kept tensors, open for reading."""

    def events(
        self, kinds: Sequence[EventKind] = (), first_step: int | None = None, last_step: int | None = None
    ) -> Iterator[Event]:
        """Yield events in order."""
        ...

    def captures(self, seq: int) -> dict[int, bytes]:
        """Return the kept tensors of an event, by position."""
        ...

    def captured(self) -> dict[int, frozenset[int]]:
        """Return the positions of the tensors that were kept, by event."""
        ...


@dataclass(frozen=True, slots=True)
class CapturedEvent:
    """An event whose tensors were kept.

    Args:
        event: the event.
        rule: number of the rule that it falls under.
        count: how many events of its thread did so before it.
    """

    event: Event
    rule: int
    count: int


class CapturedEvents:
    """The events of a record whose tensors were kept, by rule, thread and order.

    Args:
        record: the record.
        substitution: the rules by which they were kept.
    """

    def __init__(self, record: CapturingRecord, substitution: Substitution) -> None:
        self._record = record
        self._lock = threading.Lock()  # a record is read by one thread at a time
        self._by_event: dict[tuple[int, str, int], CapturedEvent] = {}
        self._by_rule: dict[int, list[CapturedEvent]] = defaultdict(list)
        kinds = tuple({rule.kind for rule in substitution.rules})
        self._search(kinds, Matcher(substitution))

    def get(self, rule: int, thread: str, count: int) -> CapturedEvent | None:
        """Return the event with that number in its thread; None if none of its tensors were kept."""
        return self._by_event.get((rule, thread, count))

    def first(self, rule: int) -> CapturedEvent | None:
        """Return the first event of a rule."""
        return next(iter(self._by_rule.get(rule, ())), None)

    def tensors(self, captured: CapturedEvent) -> dict[int, bytes]:
        """Return the kept tensors of an event, as safetensors files, by position."""
        with self._lock:
            return self._record.captures(captured.event.seq)

    def _search(self, kinds: tuple[EventKind, ...], matcher: Matcher) -> None:
        wanted = self._record.captured()
        last = max(wanted, default=-1)
        for event in self._record.events(kinds) if kinds and wanted else ():
            if event.seq > last:
                break
            for rule, count in matcher.match(event_key(event), event.thread, event.step):
                if event.seq in wanted:
                    captured = CapturedEvent(event, rule, count)
                    self._by_event[rule, event.thread, count] = captured
                    self._by_rule[rule].append(captured)


def keeps_all(record: CapturingRecord, substitution: Substitution) -> bool:
    """Tell whether a record holds all tensors that the events of the rules need.

    Args:
        record: the record.
        substitution: the rules.
    """
    kinds = tuple({rule.kind for rule in substitution.rules})
    captured, matcher = record.captured(), Matcher(substitution)
    if not captured:
        return False
    return all(
        _needed(event, substitution.rules[number]) <= captured.get(event.seq, frozenset())
        for event in record.events(kinds)
        for number, _ in matcher.match(event_key(event), event.thread, event.step)
    )


def _needed(event: Event, rule: Rule) -> set[int]:
    """Return which tensors of an event a rule puts in place; a seeding's state counts as its first."""
    if rule.part == "draw" or not rule.replaces:
        return set()
    if rule.part == "in":
        return set(rule.positions)
    if event.kind == EventKind.RNG:
        return {0}
    role = {"out": Role.OUT, "state": Role.RNG, "value": Role.VALUE}[rule.part]
    return {i for i, info in enumerate(event.tensors) if info.role == role and info.dtype != "python"}


def event_key(event: Event) -> EventKey:
    """Return the key by which rules name an event."""
    return event.kind, event.op, line_of(event.site), line_of(event.forward_site)


def line_of(site: Site | None) -> tuple[str, int]:
    """Return file and line of a site; empty and 0 for none."""
    return ("", 0) if site is None else (site.file, site.line)
