"""The line of the user's source where a confirmed cause sits, if the source itself shows it.

A record says where a value was used. Only the program's text says where the order of a set was taken, where
memory was left unwritten and where a duration was measured.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from samebits._runtime.frames import Site
from samebits.causes import Cause, OriginKind, Reach, specification_of
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.diagnosis.patches.code_region import (
    CodeRegion,
    ProjectSyntax,
    Refusal,
    all_lines,
    lines_behind,
    named_lines,
)
from samebits.diagnosis.patches.propose import RULES
from samebits.diagnosis.patches.values import is_measured

if TYPE_CHECKING:
    from samebits.comparison.results import Finding, Origin
    from samebits.diagnosis.patches.code_region import Lines
    from samebits.diagnosis.patches.edits import Project
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
    elif finding.cause == Cause.RACE and origin.entry == OriginKind.OUTSIDE and not origin.sources:
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
