"""Why an op that draws random numbers found its generator in another state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.comparison.generators import seeding, seeds_source
from samebits.comparison.ops import positions
from samebits.comparison.results import generator_words, place
from samebits.recording.events import GIVEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.comparison.lookup import EventCache, Lookup
    from samebits.comparison.sources import Record
    from samebits.recording.events import Event


@dataclass(frozen=True)
class Blame:
    """Where the states of a generator parted.

    Args:
        a: the event of the first run.
        b: the event of the second.
        cause: `unseeded-torch` where the seeding shows it, else `unknown`.
        entry: `rng`, or `control-flow` where the runs drew at different lines.
        evidence: what was seen.
        inputs: whether to go on with the differing inputs of these events instead.
    """

    a: Event
    b: Event
    cause: str
    entry: str
    evidence: tuple[str, ...]
    inputs: bool = False


@dataclass(frozen=True)
class _Draw:
    event: Event
    state: bytes


def blame_draw(lookup: Lookup, a: Event, b: Event, source: str) -> Blame:
    """Find out why the state of a generator before an op was not the same in both runs.

    Args:
        lookup: the records.
        a: the op in the first run.
        b: the same op in the second.
        source: name of the generator in the event.
    """
    if source == GIVEN:
        line = "it drew from a generator that was given to it, which was in another state in each run"
        return Blame(a, b, "unknown", "rng", (line,))
    known = source if source.startswith("cuda") else "torch"
    seeds = [seeds_before(cache.record, event, known) for cache, event in ((lookup.a, a), (lookup.b, b))]
    put_back = _same_at_boundary(lookup, a, b, known)
    if put_back and not _last_seeds_differ(seeds):
        line = (
            f"{generator_words(known)} was in the same state at the end of the step: the op drew from another"
            " generator, or the state was put back"
        )
        return Blame(a, b, "unknown", "rng", (line,))
    calls = [[event.arguments for event in listed] for listed in seeds]
    line = f"{generator_words(known)} was not in the same state before {a.op}: {seeding(known, *seeds)}"
    if calls[0] != calls[1]:
        first, second = (seeds[0][-1], seeds[1][-1]) if put_back else differing_seeds(seeds) or (a, b)
        return Blame(first, second, "unseeded-torch", "rng", (line,))
    if not calls[0]:
        return Blame(a, b, "unseeded-torch", "rng", (line,))
    return _blame_earlier(lookup, (a, b), (seeds[0][-1], seeds[1][-1]), line)


def differing_seeds(seeds: list[list[Event]]) -> tuple[Event, Event] | None:
    """The first calls of two runs that seeded a generator with other values."""
    pairs = zip(*seeds, strict=False)
    return next(((x, y) for x, y in pairs if x.arguments != y.arguments), None)


def _last_seeds_differ(seeds: list[list[Event]]) -> bool:
    return all(seeds) and seeds[0][-1].arguments != seeds[1][-1].arguments


def _same_at_boundary(lookup: Lookup, a: Event, b: Event, source: str) -> bool:
    """Whether the default generator was in the same state in both runs at the end of an op's step."""
    states = [_state_after(cache, event, source) for cache, event in ((lookup.a, a), (lookup.b, b))]
    return states[0] is not None and states[0] == states[1]


def _state_after(cache: EventCache, event: Event, source: str) -> bytes | None:
    for other in cache.record.events(("rng",), event.step, event.step):
        if other.seq > event.seq and other.op == "seed":
            return None
        if other.seq > event.seq:
            return next(
                (d for t, d in zip(other.tensors, other.digests, strict=True) if t.name == source), None
            )
    return None


def seeds_before(record: Record, before: Event, source: str) -> list[Event]:
    """The calls that seeded a generator before an event."""
    found = []
    for event in record.events(("rng",), last_step=before.step):
        if event.seq >= before.seq:
            break
        if event.op == "seed" and seeds_source(event, source):
            found.append(event)
    return found


def _blame_earlier(lookup: Lookup, ops: tuple[Event, Event], seeds: tuple[Event, Event], line: str) -> Blame:
    """Both runs seeded alike: find the first draw behind which the states part."""
    draws = zip(
        *(_draws(cache, seed, op) for cache, seed, op in zip((lookup.a, lookup.b), seeds, ops, strict=True)),
        strict=False,
    )
    before: tuple[_Draw, _Draw] | None = None
    for ours, theirs in draws:
        if ours.state != theirs.state:
            break
        before = ours, theirs
    if before is None:
        moved = (
            f"something that is not recorded moved it after {seeds[0].arguments} at {place(seeds[0].site)}"
        )
        return Blame(*ops, "unknown", "rng", (line, moved))
    a, b = before[0].event, before[1].event
    if (a.op, a.site, a.module) != (b.op, b.site, b.module):
        parted = (
            f"then the first run drew at {place(a.site)} ({a.op}), the second at {place(b.site)} ({b.op})"
        )
        return Blame(a, b, "unknown", "control-flow", (line, parted))
    return _same_draw(a, b, ops, line)


def _same_draw(a: Event, b: Event, ops: tuple[Event, Event], line: str) -> Blame:
    """The states were the same before a draw of both runs, and not at the next one."""
    if (a.arguments, a.tensors) != (b.arguments, b.tensors) or _inputs(a) != _inputs(b):
        drew = f"then {a.op} at {place(a.site)} drew another amount of numbers in each run"
        return Blame(a, b, "unknown", "rng", (line, drew), inputs=True)
    moved = f"something that is not recorded moved it after {a.op} at {place(a.site)}"
    return Blame(*ops, "unknown", "rng", (line, moved))


def _inputs(event: Event) -> list[bytes]:
    return [event.digests[i] for i in positions(event, "in")]


def _draws(cache: EventCache, seed: Event, last: Event) -> Iterator[_Draw]:
    """The ops that drew random numbers after a seeding, up to an event and with it."""
    for event in cache.record.events(("op",), seed.step, last.step):
        if event.seq > last.seq:
            return
        places = positions(event, "rng")
        if places and event.seq > seed.seq:
            yield _Draw(event, event.digests[places[0]])
