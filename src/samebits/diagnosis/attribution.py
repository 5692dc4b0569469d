"""What a set of pins that made runs identical says of the findings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.causes import Cause, OriginKind, causes_shown_by, specification_of
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.results import RemedyTrial
from samebits.diagnosis.candidates import cause_of_intervention, fixed_by, interventions_of
from samebits.records.notes import Note, NoteCode

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from samebits._runtime.frames import Site
    from samebits.comparison.results import Confirmation, Finding, Origin, Source
    from samebits.diagnosis.search import InterventionSet, SearchResult


def attributed(findings: Sequence[Finding], confirmed: Confirmation) -> tuple[Finding, ...]:
    """The findings with what the pins show: evidence, the cause where it was open or is another, remedies.

    Each pin speaks for the findings that have one of its causes; if there are none, for the first whose cause
    is open. A cause that the draw log suggested gives way only where one pin alone made the runs identical:
    then it speaks for the first finding, and all others are of its cause.

    Args:
        findings: the origins, the first one first.
        confirmed: the smallest set of pins with which runs were identical.
    """
    listed = list(findings)
    if not confirmed.certain:
        return tuple(listed)
    alone = len(confirmed.interventions) == 1
    for name in confirmed.interventions:
        causes = causes_shown_by(name)
        spoken_for = _spoken_for(listed, causes, alone=alone)
        for at, finding in enumerate(listed):
            if at in spoken_for:
                listed[at] = _caused(finding.confirmed(confirmed), name, confirmed.interventions)
            elif alone:
                listed[at] = _caused(finding, name, confirmed.interventions)
        if not spoken_for:
            listed += _met(listed, causes, confirmed)
    return tuple(listed)


def _met(findings: Sequence[Finding], causes: tuple[Cause, ...], confirmed: Confirmation) -> list[Finding]:
    """A finding of its own for a source that met another one at the same place, of which that one is told."""
    for finding in findings:
        fixed = (
            each
            for each in finding.origin.sources
            if each.cause in causes and fixed_by(each, confirmed.interventions)
        )
        own = next(fixed, None)
        if own is not None and own.site is not None:
            place = finding.origin.entered_site or finding.origin.site
            entered = None if place == own.site else place
            origin = replace(
                finding.origin, site=own.site, entered_site=entered, other_site=None, sources=(own,)
            )
            met = replace(finding, origin=origin, remedy=None)
            return [met.with_cause(own.cause).confirmed(confirmed)]
    return []


def _caused(finding: Finding, pin: str, pins: InterventionSet) -> Finding:
    """The finding with the cause that a pin shows, without sources of that cause that the pins do not fix."""
    cause = cause_of_intervention(finding, pin)
    sources = tuple(each for each in finding.origin.sources if each.cause != cause or fixed_by(each, pins))
    return _at_source(finding.with_cause(cause).with_sources(sources))


def by_source(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings for which a patch is tried at once, one for each source where several met at one place.

    Args:
        findings: the origins.

    Returns:
        none where the record does not show what one of them comes from.
    """
    listed: list[Finding] = []
    for finding in findings:
        own = [finding]
        if finding.cause == Cause.UNKNOWN:
            own = [_of_source(finding, source) for source in _of_their_own(finding.origin)]
        fresh = all(specification_of(each.cause).seeded_by for each in own)
        if not own or not (fresh or (len(own) == 1 and _is_shown(own[0]))):
            return ()
        listed += [
            each
            for each in own
            if (each.cause, each.origin.site) not in {(e.cause, e.origin.site) for e in listed}
        ]
    return tuple(listed)


def _is_shown(finding: Finding) -> bool:
    """Whether an operation shows the finding's cause by itself, or the draw log has sources of no other."""
    known = specification_of(finding.cause)
    seen = not finding.origin.sources and known.seen_as == finding.origin.entry
    drawn = {source.cause for source in finding.origin.sources} == {finding.cause}
    return seen or (drawn and known.acts_at_its_line)


def _of_their_own(origin: Origin) -> list[Source]:
    """The sources, without the memory that a generator of NumPy's at the same line fills itself."""
    filled = {source.site for source in origin.sources if source.cause == Cause.UNSEEDED_NUMPY}
    return [
        s for s in origin.sources if s.cause != Cause.UNINITIALIZED or s.site is None or s.site not in filled
    ]


def _of_source(finding: Finding, source: Source) -> Finding:
    """The finding at the line of one of its sources."""
    own = finding.with_cause(source.cause).with_sources((source,))
    if source.site is None or source.site == finding.origin.site:
        return own
    return replace(own, origin=own.origin.taken_at(source.site))


def unexplained(findings: Sequence[Finding], confirmed: Confirmation) -> tuple[Finding, ...]:
    """The findings where pins made the runs identical that have no way to act: seen, and no cause."""
    first, *others = findings
    line = Evidence.of(EvidenceCode.PINS_WITHOUT_TRACE, confirmed)
    return (first.with_evidence(line), *others)


def withdrawn(findings: Sequence[Finding], in_vain: Collection[str]) -> tuple[Finding, ...]:
    """The findings without the causes that draws suggested and whose pins did not help.

    Args:
        findings: the origins.
        in_vain: pins with which the runs still differed, and where they had differed before.
    """
    return tuple(_withdrawn(finding, frozenset(in_vain)) for finding in findings)


def _withdrawn(finding: Finding, in_vain: frozenset[str]) -> Finding:
    blamed = [source for source in finding.origin.sources if source.cause == finding.cause]
    pins = tuple(dict.fromkeys(pin for source in blamed for pin in interventions_of(source)))
    if (
        not pins
        or not in_vain.issuperset(pins)
        or finding.diagnosis.confirmed_by
        or finding.origin.entry == OriginKind.RNG
    ):
        return finding
    line = Evidence.of(EvidenceCode.PINS_DID_NOT_HELP, pins, blamed[0].op)
    return finding.with_cause(Cause.UNKNOWN, line)


def remedied(finding: Finding, confirmed: Confirmation) -> Finding:
    """The finding whose remedy does what the pins did, with what came of the pins."""
    remedy = finding.remedy
    if remedy is None or remedy.trial is not None or not confirmed.certain:
        return finding
    if not set(remedy.controls) & set(confirmed.interventions):
        return finding
    trial = RemedyTrial(
        "pins", identical=True, pairs=confirmed.pairs, pins=confirmed.interventions, steps=confirmed.steps
    )
    return replace(finding, remedy=replace(remedy, trial=trial))


def failed_note(result: SearchResult) -> Note | None:
    """What to say where no set of pins made the runs identical."""
    alone = [trial for trial in result.trials if trial.outcome == "different"]
    if not alone:
        return None
    tried = list(dict.fromkeys(pin for trial in alone for pin in trial.pins))
    return Note.of(NoteCode.PINS_IN_VAIN, *tried)


def _at_source(finding: Finding) -> Finding:
    """The finding at the line that took the value, if all that is known of its cause points to one.

    A line that was named for a value of another cause, such as a listing of files whose names are random,
    gives way to the latest source of the cause that the pins have shown.
    """
    origin = finding.origin
    own = [source.site for source in origin.sources if source.cause == finding.cause]
    site = _taken_at(own)
    if finding.cause == Cause.WALL_CLOCK and site is None:
        site = _timed_at(finding.origin)
    if _stands_at_another(finding):
        site = site or (own[0] if own else None)
    elif origin.entered_site is not None:
        return finding
    if site is None or site == origin.site:
        return finding
    return replace(finding, origin=origin.taken_at(site))


def _stands_at_another(finding: Finding) -> bool:
    """Tell whether it was put at the line of a source that is of another cause."""
    there = {source.cause for source in finding.origin.sources if source.site == finding.origin.site}
    return finding.origin.entered_site is not None and bool(there) and finding.cause not in there


def _taken_at(sites: list[Site | None]) -> Site | None:
    return sites[0] if len(set(sites)) == 1 else None


def _timed_at(origin: Origin) -> Site | None:
    """Where a function that reads the clock before and after something ends the measurement.

    Of the sources those that can have mattered come first, the latest of them before the others.
    """
    sites = [source.site for source in origin.sources if source.cause == Cause.WALL_CLOCK]
    functions = {None if site is None else (site.file, site.function) for site in sites}
    return sites[0] if len(functions) == 1 else None


def _spoken_for(findings: list[Finding], causes: tuple[Cause, ...], *, alone: bool) -> list[int]:
    numbered = list(enumerate(findings))
    fitting = [at for at, finding in numbered if finding.cause in causes]
    if alone:
        return [0, *fitting]
    unknown = [at for at, finding in numbered if finding.cause == Cause.UNKNOWN]
    return fitting or unknown[:1]
