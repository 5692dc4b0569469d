"""The findings in the light of interventions that made runs identical, or did not."""

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
    """Return the findings with the evidence of the interventions, and with the causes that they show.

    Each intervention speaks for the findings that have one of its causes; if there are none, for the first
    finding whose cause is unknown. A cause that the draw log suggested is replaced only where a single
    intervention made the runs identical: it then speaks for the first finding, and all others get its cause.

    Args:
        findings: the origins, the first one first.
        confirmed: the smallest set of interventions with which runs were identical.
    """
    listed = list(findings)
    if not confirmed.certain:
        return tuple(listed)
    alone = len(confirmed.interventions) == 1
    for name in confirmed.interventions:
        causes = causes_shown_by(name)
        confirmed_at = _confirmed_at(listed, causes, alone=alone)
        for at, finding in enumerate(listed):
            if alone or at in confirmed_at:
                shown = finding.with_confirmation(confirmed) if at in confirmed_at else finding
                listed[at] = _with_shown_cause(shown, name, confirmed.interventions)
        if not confirmed_at:
            listed += _separate_finding(listed, causes, confirmed)
    return tuple(listed)


def _separate_finding(
    findings: Sequence[Finding], causes: tuple[Cause, ...], confirmed: Confirmation
) -> list[Finding]:
    """Return a new finding for a source that a finding tells only as part of its own."""
    for finding in findings:
        fixed = (
            each
            for each in finding.origin.sources
            if each.cause in causes and fixed_by(each, confirmed.interventions)
        )
        own = next(fixed, None)
        if own is not None and own.site is not None:
            site = finding.origin.entered_site or finding.origin.site
            entered = None if site == own.site else site
            origin = replace(
                finding.origin, site=own.site, entered_site=entered, other_site=None, sources=(own,)
            )
            separate = replace(finding, origin=origin, remedy=None)
            return [separate.with_cause(own.cause).with_confirmation(confirmed)]
    return []


def _with_shown_cause(finding: Finding, intervention: str, interventions: InterventionSet) -> Finding:
    """Return the finding with the cause that an intervention shows, without sources it does not fix."""
    cause = cause_of_intervention(finding, intervention)
    sources = tuple(
        each for each in finding.origin.sources if each.cause != cause or fixed_by(each, interventions)
    )
    return _at_source(finding.with_cause(cause).with_sources(sources))


def by_source(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings for which a patch is tried at once: one for each source, also at a shared site.

    Args:
        findings: the origins.

    Returns:
        none if the record does not show the source of one of them.
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
    """Tell whether an operation alone shows the finding's cause, or all sources in the draw log have it."""
    known = specification_of(finding.cause)
    seen = not finding.origin.sources and known.seen_as == finding.origin.origin_kind
    drawn = {source.cause for source in finding.origin.sources} == {finding.cause}
    return seen or (drawn and known.acts_at_its_line)


def _of_their_own(origin: Origin) -> list[Source]:
    """Return the sources, without memory that a NumPy generator on the same line fills itself."""
    filled = {source.site for source in origin.sources if source.cause == Cause.UNSEEDED_NUMPY}
    return [
        s for s in origin.sources if s.cause != Cause.UNINITIALIZED or s.site is None or s.site not in filled
    ]


def _of_source(finding: Finding, source: Source) -> Finding:
    """Return the finding at the line of one of its sources."""
    own = finding.with_cause(source.cause).with_sources((source,))
    if source.site is None or source.site == finding.origin.site:
        return own
    return replace(own, origin=own.origin.taken_at(source.site))


def unexplained(findings: Sequence[Finding], confirmed: Confirmation) -> tuple[Finding, ...]:
    """Return the findings where interventions helped although nothing shows that they can have acted."""
    first, *others = findings
    line = Evidence.of(EvidenceCode.INTERVENTIONS_WITHOUT_TRACE, confirmed)
    return (first.with_evidence(line), *others)


def withdrawn(findings: Sequence[Finding], in_vain: Collection[str]) -> tuple[Finding, ...]:
    """Return the findings without the causes that draws suggested and whose interventions did not help.

    Args:
        findings: the origins.
        in_vain: interventions with which the runs still differed, at the same event as before.
    """
    return tuple(_withdrawn(finding, frozenset(in_vain)) for finding in findings)


def _withdrawn(finding: Finding, in_vain: frozenset[str]) -> Finding:
    blamed = [source for source in finding.origin.sources if source.cause == finding.cause]
    interventions = tuple(dict.fromkeys(name for source in blamed for name in interventions_of(source)))
    if (
        not interventions
        or not in_vain.issuperset(interventions)
        or finding.diagnosis.confirmed_by
        or finding.origin.origin_kind == OriginKind.RNG
    ):
        return finding
    line = Evidence.of(EvidenceCode.INTERVENTIONS_DID_NOT_HELP, interventions, blamed[0].op)
    return finding.with_cause(Cause.UNKNOWN, line)


def remedied(finding: Finding, confirmed: Confirmation) -> Finding:
    """Return the finding with the result of the interventions, if its remedy does the same."""
    remedy = finding.remedy
    if remedy is None or remedy.trial is not None or not confirmed.certain:
        return finding
    if not set(remedy.controls) & set(confirmed.interventions):
        return finding
    trial = RemedyTrial(
        "pins",
        identical=True,
        pairs=confirmed.pairs,
        interventions=confirmed.interventions,
        steps=confirmed.steps,
    )
    return replace(finding, remedy=replace(remedy, trial=trial))


def failed_note(result: SearchResult) -> Note | None:
    """Return the note that no set of interventions made the runs identical; None if none was tried."""
    alone = [trial for trial in result.trials if trial.outcome == "different"]
    if not alone:
        return None
    tried = list(dict.fromkeys(name for trial in alone for name in trial.interventions))
    return Note.of(NoteCode.INTERVENTIONS_IN_VAIN, *tried)


def _at_source(finding: Finding) -> Finding:
    """Move the finding to the line that took the value, if everything about its cause points to one line.

    A line that was named for a value of another cause, such as a listing of files whose names are random,
    is replaced by the latest source of the cause that the interventions have shown.
    """
    origin = finding.origin
    own = [source.site for source in origin.sources if source.cause == finding.cause]
    site = _taken_at(own)
    if finding.cause == Cause.WALL_CLOCK and site is None:
        site = _timed_at(finding.origin)
    if _is_at_other_cause(finding):
        site = site or (own[0] if own else None)
    elif origin.entered_site is not None:
        return finding
    if site is None or site == origin.site:
        return finding
    return replace(finding, origin=origin.taken_at(site))


def _is_at_other_cause(finding: Finding) -> bool:
    """Tell whether the finding stands at the line of a source of another cause."""
    there = {source.cause for source in finding.origin.sources if source.site == finding.origin.site}
    return finding.origin.entered_site is not None and bool(there) and finding.cause not in there


def _taken_at(sites: list[Site | None]) -> Site | None:
    return sites[0] if len(set(sites)) == 1 else None


def _timed_at(origin: Origin) -> Site | None:
    """Return where a function that reads the clock before and after something ends the measurement.

    The sources that can have mattered come first, and of those the latest.
    """
    sites = [source.site for source in origin.sources if source.cause == Cause.WALL_CLOCK]
    functions = {None if site is None else (site.file, site.function) for site in sites}
    return sites[0] if len(functions) == 1 else None


def _confirmed_at(findings: list[Finding], causes: tuple[Cause, ...], *, alone: bool) -> list[int]:
    numbered = list(enumerate(findings))
    fitting = [at for at, finding in numbered if finding.cause in causes]
    if alone:
        return [0, *fitting]
    unknown = [at for at, finding in numbered if finding.cause == Cause.UNKNOWN]
    return fitting or unknown[:1]
