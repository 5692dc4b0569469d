"""Evidence from the states of the random number generators and the calls that seed them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from samebits.causes import Cause, OriginKind
from samebits.comparison._sites import site_key
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.ops import input_digests, positions
from samebits.records.events import EARLIER, GIVEN
from samebits.records.kinds import EventKind, Role
from samebits.rng.sources import TORCH, is_seeded_by

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from samebits.comparison.lookup import EventCache, Lookup, Record
    from samebits.comparison.steps import Step
    from samebits.records.events import Event

_MOST_SEEDS = 1000


def seeding(source: str, a: Iterable[Event], b: Iterable[Event]) -> Evidence:
    """Describe how each run seeded a source."""
    calls = [_calls_of(source, events) for events in (a, b)]
    texts = [[event.arguments for event in events] for events in calls]
    if not any(texts):
        return Evidence.of(EvidenceCode.NEVER_SEEDED)
    if texts[0] == texts[1]:
        last = calls[0][-1]
        if _is_unknown(last):
            return Evidence.of(EvidenceCode.NOT_SEEDED_LATER)
        return Evidence.of(EvidenceCode.SEEDED_ALIKE, last.arguments, last.site)
    if not all(texts):
        only = next(events[-1] for events in calls if events)
        return Evidence.of(EvidenceCode.SEEDED_BY_ONE, only.arguments, only.site)
    first, second = next(
        ((x, y) for x, y in zip(*calls, strict=False) if x.arguments != y.arguments),
        (calls[0][-1], calls[1][-1]),
    )
    if first.arguments == second.arguments:
        return Evidence.of(EvidenceCode.SEEDED_OTHER_TIMES, len(calls[0]), len(calls[1]))
    return Evidence.of(EvidenceCode.SEEDED_DIFFERENTLY, first.arguments, second.arguments, first.site)


def _is_unknown(call: Event) -> bool:
    """Tell whether a call only says that a generator may have been seeded before recording began."""
    return call.arguments.endswith(EARLIER) and "->" not in call.arguments


def _calls_of(source: str, events: Iterable[Event]) -> list[Event]:
    """Return the calls that seeded a source."""
    return [event for event in events if is_seeded_by(source, event.arguments)]


class GeneratorLog:
    """Follows the generators of two runs, step by step."""

    def __init__(self) -> None:
        self.first_difference: dict[str, int] = {}
        self.seeds: tuple[list[Event], list[Event]] = ([], [])
        self._seeded_then: dict[str, tuple[Evidence, bool]] = {}
        self._before: dict[str, bytes] = {}
        self._drawn: dict[str, int] = {}

    def add(self, a: Step, b: Step) -> None:
        """Take in the next step of both runs."""
        for log, step in zip(self.seeds, (a, b), strict=True):
            log.extend(step.seeds[: max(0, _MOST_SEEDS - len(log))])
        for source, state in a.generators.items():
            seeded = any(is_seeded_by(source, event.arguments) for event in a.seeds)
            if source in a.drawn or (not seeded and self._before.get(source, state) != state):
                self._drawn.setdefault(source, a.last)
            differs = source in b.generators and state != b.generators[source]
            if differs and source not in self.first_difference:
                self.first_difference[source] = a.last
                self._seeded_then[source] = self._seeding(source)
        self._before.update(a.generators)

    def lines(self, *, used_only: bool = False, used: Collection[str] = ()) -> list[Evidence]:
        """Return evidence of each generator whose state differed.

        Args:
            used_only: leave out generators of which no use is known: Python and NumPy seed theirs from the
                operating system in every run.
            used: sources that are known to have been used from elsewhere.
        """
        return [
            self._line(source, step)
            for source, step in sorted(self.first_difference.items())
            if not used_only or source in used or source in self._drawn or self._seeded(source)
        ]

    def _line(self, source: str, step: int) -> Evidence:
        used = self._drawn.get(source)
        return Evidence.of(EvidenceCode.GENERATOR_STATE, source, step, used, *self._seeded_then[source])

    def _seeding(self, source: str) -> tuple[Evidence, bool]:
        """Describe the seedings so far, and tell whether the generator moved after equal seedings."""
        first, second = (_calls_of(source, log) for log in self.seeds)
        alike = [event.arguments for event in first] == [event.arguments for event in second]
        return seeding(source, *self.seeds), bool(first) and alike and not _is_unknown(first[-1])

    def _seeded(self, source: str) -> bool:
        return any(is_seeded_by(source, event.arguments) for log in self.seeds for event in log)


@dataclass(frozen=True)
class Blame:
    """The events at which the states of a generator diverged.

    Args:
        a: the event of the first run.
        b: the event of the second.
        cause: `unseeded-torch` where the seeding shows it, else `unknown`.
        origin_kind: `rng`, or `control-flow` where the runs drew at different lines.
        evidence: what was seen.
        inputs: whether to follow the differing inputs of these events instead.
    """

    a: Event
    b: Event
    cause: Cause
    origin_kind: OriginKind
    evidence: tuple[Evidence, ...]
    inputs: bool = False


@dataclass(frozen=True)
class _Draw:
    event: Event
    state: bytes


class DrawBlame:
    """Finds out why the state of a generator before an op was not the same in both runs.

    It caches what it reads of the records: a script may draw a hundred thousand times.

    Args:
        lookup: the records.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._logs = lookup.a.seed_log, lookup.b.seed_log
        self._common: dict[tuple[int, int], _CommonDraws] = {}
        self._seedings: dict[tuple[str, int, int], Evidence] = {}
        self._lookup = lookup

    def blame(self, a: Event, b: Event, source: str) -> Blame:
        """Find out why the state of a generator differed before an op.

        Args:
            a: the op in the first run.
            b: the same op in the second.
            source: name of the generator in the event.
        """
        if source == GIVEN:
            line = Evidence.of(EvidenceCode.GIVEN_GENERATOR)
            return Blame(a, b, Cause.UNKNOWN, OriginKind.RNG, (line,))
        known = source if source.startswith("cuda") else TORCH.name
        seeds = [log.seeds_before(event, known) for log, event in zip(self._logs, (a, b), strict=True)]
        put_back = self._same_at_boundary(a, b, known)
        if put_back and not _last_seeds_differ(seeds):
            line = Evidence.of(EvidenceCode.GENERATOR_PUT_BACK, known)
            return Blame(a, b, Cause.UNKNOWN, OriginKind.RNG, (line,))
        line = Evidence.of(EvidenceCode.GENERATOR_BEFORE, known, a.op, self._seeding(known, seeds))
        if _calls(seeds[0]) != _calls(seeds[1]):
            first, second = (seeds[0][-1], seeds[1][-1]) if put_back else differing_seeds(seeds) or (a, b)
            return Blame(first, second, Cause.UNSEEDED_TORCH, OriginKind.RNG, (line,))
        if not seeds[0]:
            return Blame(a, b, Cause.UNSEEDED_TORCH, OriginKind.RNG, (line,))
        return self._earlier((a, b), (seeds[0][-1], seeds[1][-1]), line)

    def _seeding(self, source: str, seeds: list[list[Event]]) -> Evidence:
        key = source, len(seeds[0]), len(seeds[1])
        if key not in self._seedings:
            self._seedings[key] = seeding(source, *seeds)
        return self._seedings[key]

    def _same_at_boundary(self, a: Event, b: Event, source: str) -> bool:
        """Tell whether a generator was in the same state in both runs at the end of an op's step."""
        states = [log.state_after(event, source) for log, event in zip(self._logs, (a, b), strict=True)]
        return states[0] is not None and states[0] == states[1]

    def _earlier(self, ops: tuple[Event, Event], seeds: tuple[Event, Event], line: Evidence) -> Blame:
        """Find the first draw after which the states diverge, where both runs seeded alike."""
        key = seeds[0].seq, seeds[1].seq
        common = self._common.get(key)
        if common is None:
            common = self._common[key] = _CommonDraws(self._lookup, seeds)
        before = common.last_before(ops)
        if before is None:
            moved = Evidence.of(EvidenceCode.MOVED_UNSEEN, seeds[0].arguments, seeds[0].site)
            return Blame(*ops, Cause.UNKNOWN, OriginKind.RNG, (line, moved))
        a, b = before
        if (a.op, site_key(a.site), a.module) != (b.op, site_key(b.site), b.module):
            parted = Evidence.of(EvidenceCode.DREW_ELSEWHERE, a.site, a.op, b.site, b.op)
            return Blame(a, b, Cause.UNKNOWN, OriginKind.CONTROL_FLOW, (line, parted))
        return _same_draw(a, b, ops, line)


class SeedLog:
    """The seedings of one run, and the states of its generators at each boundary.

    Args:
        record: the record of the run.
        last_step: the last step that is asked about; None for any.
    """

    def __init__(self, record: Record, last_step: int | None = None) -> None:
        self._record = record
        self._last_step = last_step
        self._calls: dict[str, list[Event]] = {}

    @cached_property
    def _events(self) -> list[Event]:
        return list(self._record.events((EventKind.RNG,), None, self._last_step))

    @cached_property
    def _seqs(self) -> list[int]:
        return [event.seq for event in self._events]

    def seeds_before(self, event: Event, source: str) -> list[Event]:
        """Return the calls that seeded a generator before an event."""
        calls = self._calls.get(source)
        if calls is None:
            calls = [e for e in self._events if e.op == "seed" and is_seeded_by(source, e.arguments)]
            self._calls[source] = calls
        return calls[: bisect_left(calls, event.seq, key=lambda call: call.seq)]

    def state_after(self, event: Event, source: str) -> bytes | None:
        """Return the state of a generator at the end of an event's step; None if a seeding came between."""
        row = bisect_left(self._seqs, event.seq + 1)
        after = self._events[row] if row < len(self._events) else None
        if after is None or after.step != event.step or after.op == "seed":
            return None
        return next((d for t, d in zip(after.tensors, after.digests, strict=True) if t.name == source), None)


class _CommonDraws:
    """The draws after a seeding of both runs, up to the first with another state of its generator."""

    def __init__(self, lookup: Lookup, seeds: tuple[Event, Event]) -> None:
        self._lookup = lookup
        self._seqs: tuple[list[int], list[int]] = [], []
        streams = (_draws(cache, seed) for cache, seed in zip((lookup.a, lookup.b), seeds, strict=True))
        for ours, theirs in zip(*streams, strict=False):
            if ours.state != theirs.state:
                break
            self._seqs[0].append(ours.event.seq)
            self._seqs[1].append(theirs.event.seq)

    def last_before(self, ops: tuple[Event, Event]) -> tuple[Event, Event] | None:
        """Return the last common draw that is not after an op of each run; None when there is none."""
        rows = (bisect_right(seqs, op.seq) for seqs, op in zip(self._seqs, ops, strict=True))
        row = min(rows) - 1
        if row < 0:
            return None
        a, b = self._lookup.a.get(self._seqs[0][row]), self._lookup.b.get(self._seqs[1][row])
        return None if a is None or b is None else (a, b)


def differing_seeds(seeds: list[list[Event]]) -> tuple[Event, Event] | None:
    """Return the first calls of two runs that seeded a generator with other values."""
    pairs = zip(*seeds, strict=False)
    return next(((x, y) for x, y in pairs if x.arguments != y.arguments), None)


def _last_seeds_differ(seeds: list[list[Event]]) -> bool:
    return all(seeds) and seeds[0][-1].arguments != seeds[1][-1].arguments


def _same_draw(a: Event, b: Event, ops: tuple[Event, Event], line: Evidence) -> Blame:
    """Blame a draw of both runs before which the states were the same, and after which they were not."""
    if (a.arguments, a.tensors) != (b.arguments, b.tensors) or input_digests(a) != input_digests(b):
        drew = Evidence.of(EvidenceCode.DREW_OTHER_AMOUNT, a.op, a.site)
        return Blame(a, b, Cause.UNKNOWN, OriginKind.RNG, (line, drew), inputs=True)
    moved = Evidence.of(EvidenceCode.MOVED_UNSEEN, a.op, a.site)
    return Blame(*ops, Cause.UNKNOWN, OriginKind.RNG, (line, moved))


def _calls(seeds: list[Event]) -> list[str]:
    return [event.arguments for event in seeds]


def _draws(cache: EventCache, seed: Event) -> Iterator[_Draw]:
    """Yield the ops that drew random numbers after a seeding."""
    for event in cache.record.events((EventKind.OP,), seed.step):
        of_generator = positions(event, Role.RNG)
        if of_generator and event.seq > seed.seq:
            yield _Draw(event, event.digests[of_generator[0]])
