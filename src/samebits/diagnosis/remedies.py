"""The remedy of a confirmed cause, and the line of the user's source where it sits.

A record says where a value was used. Only the program's text says where the order of a set was taken, where
memory was left unwritten and where a duration was measured.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from samebits._runtime.frames import Site
from samebits.causes import Cause, OriginKind, Reach, causes_shown_by, specification_of
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.results import Remedy, site_text
from samebits.determinism.deterministic_ops import ADVICE
from samebits.diagnosis.patches.code_region import (
    CodeRegion,
    ProjectSyntax,
    Refusal,
    all_lines,
    lines_behind,
    named_lines,
)
from samebits.diagnosis.patches.propose import RULES, propose, without_finding
from samebits.diagnosis.patches.seeds import MADE, SEEDED_OBJECTS, calls_of, library_source
from samebits.diagnosis.patches.values import is_measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.comparison.results import Comparison, Finding, Origin, Source
    from samebits.diagnosis.patches.code_region import Lines
    from samebits.diagnosis.patches.edits import Patch, Project
    from samebits.diagnosis.patches.syntax import Syntax

_SHARING = ("share_memory", "share_memory_", "SharedMemory", "RawArray")
_STARTING = ("Process", "start_processes", "spawn", "fork")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def at_source_line(finding: Finding, project: Project) -> Finding:
    """Move the finding to the line of its cause, if interventions have shown it and only one line fits.

    The line is looked for where the values of the finding may come from, then in all files of the project.
    If several lines fit, or the finding is at one of them already, it stays where it is.

    Args:
        finding: an origin.
        project: the user's files.
    """
    origin = finding.origin
    if not finding.diagnosis.confirmed_by or origin.site is None:
        return finding
    sources = ProjectSyntax(project)
    if finding.cause == Cause.WALL_CLOCK:
        site = _measured(sources, finding.origin)
    elif finding.cause == Cause.RACE and origin.origin_kind == OriginKind.OUTSIDE and not origin.sources:
        site = _shared_at(sources)
    elif specification_of(finding.cause).visible and origin.entered_site is None:
        site = _only_line(sources, finding)
    else:
        site = None
    if site is None or (site.file, site.line) == (origin.site.file, origin.site.line):
        return finding
    entered = origin.entered_site or origin.site
    line = Evidence.of(EvidenceCode.ENTERED, entered, origin.op or origin.kind)
    evidence = () if origin.entered_site else (line,)
    return replace(finding.with_evidence(*evidence), origin=origin.taken_at(site))


def _only_line(sources: ProjectSyntax, finding: Finding) -> Site | None:
    sites = [
        site
        for site in (finding.origin.site, finding.origin.forward_site, finding.origin.other_site)
        if site is not None
    ]
    if _suspects(sources, finding.cause, named_lines(sources, sites)):
        return None
    behind = lines_behind(sources, sites)
    everywhere = all_lines(sources, [*behind, *(file.path for file in sources.project.files)])
    for lines in (behind, everywhere):
        suspects = _suspects(sources, finding.cause, lines)
        if suspects:
            return suspects.pop() if len(suspects) == 1 else None
    return None


def _shared_at(sources: ProjectSyntax) -> Site | None:
    """Return the one line that shares tensors with other processes, else the one that starts them."""
    for names in (_SHARING, _STARTING):
        calls = {
            _site(syntax, node.lineno)
            for syntax in sources.all()
            for node in syntax.nodes
            if isinstance(node, ast.Call) and syntax.name(node.func).rpartition(".")[2] in names
        }
        if calls:
            return calls.pop() if len(calls) == 1 else None
    return None


def _suspects(sources: ProjectSyntax, cause: Cause, lines: Lines) -> set[Site]:
    """Return the lines where the patch rules see that cause, also those that they cannot change."""
    sites = set()
    rules = specification_of(cause).patch_rules(Reach.NEARBY, Reach.ANYWHERE)
    for path, numbers in lines.items():
        syntax = sources.syntax(path)
        if syntax is None:
            continue
        region = CodeRegion(syntax, frozenset(numbers), cause)
        changes = [change for rule in rules for change in RULES[rule](region)]
        seen = [change.line for change in changes if isinstance(change, Refusal) or change.edits]
        sites |= {_site(syntax, line) for line in seen}
    return sites


def _measured(sources: ProjectSyntax, origin: Origin) -> Site | None:
    """Return the reading of the clock that ends a measurement, of several in one function."""
    read = {source.site for source in origin.sources if source.cause == Cause.WALL_CLOCK and source.site}
    inside = {site for site in read if (site.file, site.function) == _scope(origin.site)}
    ends = {site for site in inside if _is_measured_at(sources, site)}
    return ends.pop() if len(ends) == 1 else None


def _scope(site: Site | None) -> tuple[str, str]:
    return ("", "") if site is None else (site.file, site.function)


def _is_measured_at(sources: ProjectSyntax, site: Site) -> bool:
    syntax = sources.syntax(site.file)
    if syntax is None:
        return False
    region = CodeRegion(syntax, frozenset({site.line}), Cause.WALL_CLOCK)
    return any(is_measured(region, call) for call in region.calls())


def _site(syntax: Syntax, line: int) -> Site:
    statement = syntax.statement_at(line)
    around = [] if statement is None else [statement, *syntax.ancestors(statement)]
    names = [scope.name for scope in around if isinstance(scope, _SCOPES) and scope.lineno < line]
    return Site(syntax.file.path, line, ".".join(reversed(names)) or "<module>")


_SHOWN = 4  # number of findings for which the change is shown on the user's own line


def remedy_for(finding: Finding, project: Project | None = None) -> Remedy | None:
    """Return the change that removes a difference; None if the cause is not known.

    Args:
        finding: the origin.
        project: the user's files, to show the change on the user's own line; None shows none.
    """
    asked = library_source(finding)
    maker = asked.library if asked is not None and asked.op.startswith(MADE) else None
    source = _source(finding, project) if maker is None else maker.function
    advice = specification_of(finding.cause).advice_for(
        source, in_worker=_in_worker(finding), by_library=maker is not None
    )
    if advice is None:
        return None
    text = _with_site(advice.text, finding)
    if asked is not None:
        text = _with_call(text, asked, project, made=maker is not None)
    remedy = Remedy(text, controls=advice.controls)
    patches = propose([finding], project, most=1).patches if project is not None else ()
    if not patches:
        return remedy
    return _shown(remedy, patches[0])


def with_remedies(comparison: Comparison, project: Project | None = None) -> Comparison:
    """Return the comparison with a remedy for each finding that has none yet."""
    findings = tuple(
        finding
        if finding.remedy is not None
        else replace(finding, remedy=remedy_for(finding, project if number < _SHOWN else None))
        for number, finding in enumerate(comparison.findings)
    )
    return replace(comparison, findings=findings)


def with_whole_set(comparison: Comparison, interventions: Sequence[str], project: Project) -> Comparison:
    """Return the comparison with one remedy, at the first finding, for everything that the interventions did.

    Args:
        comparison: with a remedy for each finding whose cause is known.
        interventions: the smallest set of interventions with which the runs were identical.
        project: the user's files, to show the change.
    """
    if not comparison.findings:
        return comparison
    first, *others = comparison.findings
    own = [first, *(each for each in others if _does_some_of(each.remedy, interventions))]
    remedies = [each.remedy for each in own if each.remedy is not None]
    advised = [
        specification_of(causes_shown_by(name)[0]).advice_for("")
        for name in without_finding(own, interventions)
    ]
    texts = [each.text for each in (*remedies, *advised) if each is not None]
    if len(dict.fromkeys(texts)) < 2:  # there is only one change
        return comparison
    trial = next((remedy.trial for remedy in remedies if remedy.trial is not None), None)
    whole = Remedy("; ".join(dict.fromkeys(texts)), tuple(interventions), trial=trial)
    patches = propose(own, project, most=1, interventions=interventions).patches
    whole = _shown(whole, patches[0]) if patches else whole
    return replace(comparison, findings=(replace(first, remedy=whole), *others))


def _does_some_of(remedy: Remedy | None, interventions: Sequence[str]) -> bool:
    return remedy is not None and not set(remedy.controls).isdisjoint(interventions)


def _shown(remedy: Remedy, patch: Patch) -> Remedy:
    """Return the remedy with the lines of a patch."""
    before, after = patch.first
    return replace(remedy, before=before, after=after, changes=patch.changes())


def op_advice(op: str) -> str:
    """Return the substitute for an op without a deterministic kernel, by its name in torch; else empty."""
    name = op.partition("::")[2].partition(".")[0].lower()
    words = {word for word in name.split("_") if word} - {"backward"}
    for advice in ADVICE:
        known = set(re.split(r"[^a-z0-9]+|_", advice.pattern.lower()))
        if words and words <= known and "mps" not in known and "MPS" not in advice.op:
            return advice.instead
    return ""


def _source(finding: Finding, project: Project | None) -> str:
    """Return the first draw of the finding's cause, else a call on its line, else the op."""
    drawn = (source.op for source in finding.origin.sources if source.cause == finding.cause)
    return next(drawn, "") or _called(finding, project) or finding.origin.op or ""


def _with_call(text: str, asked: Source, project: Project | None, *, made: bool) -> str:
    """Add the parameter by which the library that the user's line calls takes a seed."""
    call = asked.library
    if call is None or not call.parameter or call.parameter in SEEDED_OBJECTS:
        return text
    calls = calls_of(ProjectSyntax(project), asked) if project is not None else []
    name = calls[0][0].source(calls[0][1].func) if calls else call.name
    given = f"pass `{call.parameter}=` to `{name}(...)`"
    return f"{given}: it makes a generator of its own" if made else f"{text}; or {given}"


def _called(finding: Finding, project: Project | None) -> str:
    """Return the first function called on the line that no draw shows, such as `builtins.hash`."""
    unseen = specification_of(finding.cause).undrawn_calls
    names = _calls(finding.origin, project) if unseen else []
    return next((name for name in names if name in unseen), "")


def _calls(origin: Origin, project: Project | None) -> list[str]:
    """Return the full names of the functions that the line of a finding calls, if its file is the user's."""
    if project is None or origin.site is None:
        return []
    syntax = ProjectSyntax(project).syntax(origin.site.file)
    return [] if syntax is None else [syntax.name(call.func) for call in syntax.calls({origin.site.line})]


def _in_worker(finding: Finding) -> bool:
    return any(source.in_worker and source.cause == finding.cause for source in finding.origin.sources)


def _with_site(text: str, finding: Finding) -> str:
    """Add the line of the source, if that is not the finding's own."""
    drawn = (source for source in finding.origin.sources if source.cause == finding.cause)
    source = next(drawn, None)
    if source is None or source.site is None or source.site == finding.origin.site:
        extra = op_advice(finding.origin.op or "") if finding.cause == Cause.NONDETERMINISTIC_KERNEL else ""
        return f"{text}; or replace the op: {extra}" if extra else text
    return f"{text} ({source.op} at {site_text(source.site)})"
