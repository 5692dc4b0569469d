"""Evidence from the draw log: the values from outside torch that differed before an origin."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from samebits.causes import Cause, OriginKind
from samebits.comparison._generator_states import differing_seeds
from samebits.comparison._sites import site_key
from samebits.comparison.draw_pairs import DrawPair, differing_draws
from samebits.comparison.environments import facts_behind, threads_per_op
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.records.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from samebits.comparison._survey import Survey
    from samebits.comparison.lookup import EventCache, Lookup
    from samebits.comparison.results import Finding, Origin
    from samebits.records.events import Event

    Target = tuple[Event | None, Event | None]

_SHOWN = 4
_NEARBY = 64  # events between a draw and what it is near to, draws with them
_ORIGIN_KINDS = (OriginKind.OUTSIDE, OriginKind.ARGUMENT, OriginKind.BATCH, OriginKind.CONTROL_FLOW)
_PASSED = (EventKind.DRAW, EventKind.RNG, EventKind.READ, EventKind.EARLIER)
# A cause that the op alone shows -> the cause of the draws that say more.
_NARROWED = {Cause.RACE: Cause.RACE, Cause.NONDETERMINISTIC_KERNEL: Cause.THREAD_COUNT}
_BATCH_ENDS = (EventKind.BATCH, EventKind.STEP, EventKind.LOSS, EventKind.GRAD)


class DrawEvidence:
    """Adds to findings the evidence in the draw logs of two runs.

    Args:
        lookup: the records.
        survey: how the runs differ.
        last_steps: the last step of each run to examine.
        explained: cause, file and line of draws to leave out.
    """

    def __init__(
        self,
        lookup: Lookup,
        survey: Survey,
        last_steps: tuple[int, int],
        explained: Collection[tuple[Cause, str, int]] = (),
    ) -> None:
        self._lookup = lookup
        self._survey = survey
        self._last_steps = last_steps
        self._explained = frozenset(explained)

    def explain(self, finding: Finding) -> Finding:
        """Add the draws that differed before a finding, and their cause and site if these are clear.

        They are clear when all draws that can have mattered have one cause. Many scripts read a clock, a
        process id or a random name for logs alone. Such a draw counts when it is on the line of the origin,
        or when nothing but draws lies between. It does not count when it differed in earlier steps too, whose
        results were the same. Other draws, such as those of a generator without a seed, always count.
        """
        if not _eligible(finding):
            return finding
        target = self._event(finding.origin)
        if target is not None and _chose_seeds(target):
            return finding
        before = [] if target is None else self._before(target)
        if finding.cause in _NARROWED:
            before = [pair for pair in before if pair.cause == _NARROWED[finding.cause]]
        if target is None or not before:
            return self._by_environment(finding)
        lines, claims = self._claims(finding, target, before)
        named = _named(before, claims)
        finding = finding.with_evidence(*lines, *_listed(named))
        return _claimed(finding.with_sources(pair.source for pair in named[:_SHOWN]), claims)

    def with_those_on_line(self, finding: Finding) -> Finding:
        """Add to a finding of several events of one line the generators drawn from on that line.

        An index from a sampler and one that a dataset drew reach the same line, and an event of one run may
        correspond to either of them in the other run.
        """
        target = self._event(finding.origin)
        event = None if target is None else target[0] or target[1]
        known = {(source.op, source.site) for source in finding.origin.sources}
        on_line = [
            pair
            for pair in self._pairs
            if event is not None and pair.unseeded and pair.a.step == event.step
            and _same_line(pair.a, finding.origin) and (pair.a.op, pair.a.site) not in known
        ]  # fmt: skip
        named = _named(on_line, [])[:_SHOWN]
        sources = (*finding.origin.sources, *(pair.source for pair in named))
        return finding.with_evidence(*(pair.evidence() for pair in named)).with_sources(sources)

    def _by_environment(self, finding: Finding) -> Finding:
        """Blame what the runs had differently for a kernel's results: the number of threads, or a setting."""
        if finding.origin.origin_kind != OriginKind.KERNEL:
            return finding
        first, second = self._lookup.a.record.info, self._lookup.b.record.info
        counts = [threads_per_op(info.environment) for info in (first, second)]
        if None not in counts and counts[0] != counts[1]:
            return finding.with_cause(Cause.THREAD_COUNT, Evidence.of(EvidenceCode.THREAD_NUMBERS, *counts))
        facts = facts_behind(first, second, finding.origin.op or "")
        if not facts:
            return finding
        line = Evidence.of(EvidenceCode.OTHER_SETTINGS, facts[0], len(facts) - 1)
        return finding.with_cause(Cause.ENVIRONMENT, line)

    @cached_property
    def _pairs(self) -> list[DrawPair]:
        records = self._lookup.a.record, self._lookup.b.record
        pairs = differing_draws(records, self._survey.first_span, self._last_steps)
        return [pair for pair in pairs if (pair.cause, *_line(pair.a)) not in self._explained]

    @cached_property
    def _harmless(self) -> set[object]:
        """The sources and lines that gave other values in a step whose results were the same."""
        first = self._survey.first
        if first is None or self._survey.several_threads:
            return set()
        return {_source(pair) for pair in self._pairs if pair.a.step < first.a.first}

    def _event(self, origin: Origin) -> Target | None:
        lookup = self._lookup
        events = tuple(
            None if seq is None else cache.get(seq)
            for cache, seq in zip((lookup.a, lookup.b), origin.events, strict=True)
        )
        return None if events == (None, None) else (events[0], events[1])

    def _before(self, target: Target) -> list[DrawPair]:
        a, b = target
        return [
            pair
            for pair in self._pairs
            if (a is None or pair.a.seq < a.seq) and (b is None or pair.b.seq < b.seq)
            and (pair.unseeded or pair.unwritten or _source(pair) not in self._harmless)
        ]  # fmt: skip

    def _claims(
        self, finding: Finding, target: Target, before: list[DrawPair]
    ) -> tuple[list[Evidence], list[DrawPair]]:
        """Return evidence of seedings, and the draws that can have mattered."""
        near = [pair for pair in before if self._is_near(pair, target)]
        on_line = [pair for pair in near if _same_line(pair.a, finding.origin)]
        # Memory that is filled later differs too: only an intervention tells whether it was read unwritten.
        claims = [pair for pair in on_line or near if not (pair.generator or pair.unwritten)]
        claims = [pair for pair in claims if pair.fresh] or claims  # all that is drawn then follows from it
        if not on_line:
            claims += [pair for pair in before if pair.weighty and not pair.generator]
        lines: list[Evidence] = []
        for library in sorted({pair.generator for pair in before} - {""}):
            more, behind = self._behind_state(library, [p for p in before if p.generator == library])
            lines += more
            claims += behind
        return lines, list(dict.fromkeys(claims))

    def _behind_state(self, library: str, drawn: list[DrawPair]) -> tuple[list[Evidence], list[DrawPair]]:
        """Explain why a library's global generator was in another state: by its seed, or by its draws."""
        caches, events = (self._lookup.a, self._lookup.b), (drawn[-1].a, drawn[-1].b)
        seeds = [c.seed_log.seeds_before(event, library) for c, event in zip(caches, events, strict=True)]
        if not any(seeds):
            return [], drawn
        seeding = differing_seeds(seeds)
        if seeding is None:
            return [], []
        first, second = seeding
        line = Evidence.of(EvidenceCode.SEEDED_DIFFERENTLY, first.arguments, second.arguments, first.site)
        return [line], [pair for pair in self._before(seeding) if self._is_near(pair, seeding)]

    def _is_near(self, pair: DrawPair, target: Target) -> bool:
        a, b = target
        event, drawn = (a, pair.a) if a is not None else (b, pair.b)
        if event is None:
            return False
        if (
            event.kind != EventKind.BATCH
            and event.site is not None
            and site_key(event.site) == site_key(drawn.site)
        ):
            return True
        cache = self._lookup.a if a is not None else self._lookup.b
        return _nothing_between(cache, drawn, event)


def _nothing_between(cache: EventCache, drawn: Event, event: Event) -> bool:
    if event.kind == EventKind.BATCH:  # collating is part of it
        between = cache.record.events(_BATCH_ENDS, drawn.step, event.step)
        return not any(drawn.seq < other.seq < event.seq for other in between)
    if event.seq - drawn.seq > _NEARBY:
        return False
    between_them = (cache.get(seq) for seq in range(drawn.seq + 1, event.seq))
    return all(
        other is None or other.kind in _PASSED or other.thread != event.thread for other in between_them
    )


def _eligible(finding: Finding) -> bool:
    origin = finding.origin
    if origin.kind == EventKind.RNG and origin.op == "seed":
        return True
    if origin.origin_kind == OriginKind.KERNEL:
        return finding.cause == Cause.NONDETERMINISTIC_KERNEL
    if origin.origin_kind == OriginKind.ORDER:
        return finding.cause in (Cause.UNKNOWN, Cause.RACE)
    return finding.cause == Cause.UNKNOWN and origin.origin_kind in (*_ORIGIN_KINDS, OriginKind.RNG)


def _chose_seeds(target: Target) -> bool:
    """Tell whether torch itself chose the seed that differs, so that no earlier draw has a part in it."""
    return any(event is not None and event.arguments.startswith("torch.seed(") for event in target)


def _line(event: Event) -> tuple[str, int]:
    return ("", 0) if event.site is None else (event.site.file, event.site.line)


def _source(pair: DrawPair) -> object:
    return pair.a.op, site_key(pair.a.site)


def _same_line(drawn: Event, origin: Origin) -> bool:
    return origin.site is not None and site_key(drawn.site) == site_key(origin.site)


def _named(before: Iterable[DrawPair], claims: list[DrawPair]) -> list[DrawPair]:
    """Pick one draw of each source and line: first those that can have mattered, the latest first."""
    chosen: dict[object, DrawPair] = {}
    latest_first = list(before)[::-1]
    for pair in [*reversed(claims), *sorted(latest_first, key=lambda pair: pair.unwritten)]:
        chosen.setdefault(_source(pair), pair)
    return list(chosen.values())


def _listed(pairs: list[DrawPair]) -> list[Evidence]:
    rest = len(pairs) - _SHOWN
    more = [Evidence.of(EvidenceCode.OTHER_SOURCES, rest)] if rest > 0 else []
    return [pair.evidence() for pair in pairs[:_SHOWN]] + more


def _claimed(finding: Finding, claims: list[DrawPair]) -> Finding:
    causes = {pair.cause for pair in claims}
    if len(causes) != 1:
        return finding
    finding = finding.with_cause(causes.pop())
    last = max(claims, key=lambda pair: pair.a.seq)
    sources = {pair.generator or _source(pair) for pair in claims}
    if len(sources) != 1 or last.a.site is None or _same_line(last.a, finding.origin):
        return finding
    entered = Evidence.of(EvidenceCode.ENTERED, finding.origin.site, finding.origin.op)
    return replace(finding.with_evidence(entered), origin=finding.origin.taken_at(last.a.site))
