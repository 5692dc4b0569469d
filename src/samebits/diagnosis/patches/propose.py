"""Patches that may remove the origins of a difference, the smallest and likeliest first."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from samebits.causes import Cause, PatchRule, Reach, causes_shown_by, specification_of
from samebits.diagnosis.patches import orders, seeds, sets, stream_waits, torch_calls, values
from samebits.diagnosis.patches.code_region import (
    CodeRegion,
    ProjectSyntax,
    Refusal,
    all_lines,
    lines_behind,
    named_lines,
)
from samebits.diagnosis.patches.edits import (
    Edit,
    Need,
    NeedKind,
    Patch,
    PatchedFile,
    changed_line,
    spliced,
)
from samebits.diagnosis.patches.script_head import (
    NEED_OF_INTERVENTION,
    head_edit,
    import_edit,
    library_of,
    usual_seed,
)
from samebits.records.kinds import EventKind
from samebits.rng.sources import NUMPY, PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from samebits._runtime.frames import Site
    from samebits.comparison.results import Finding, Origin
    from samebits.diagnosis.patches.code_region import Lines, Rule
    from samebits.diagnosis.patches.edits import Change, Project, SourceFile

    Attempt = tuple[Cause, PatchRule]

RULES: Mapping[PatchRule, Rule] = {
    **sets.RULES,
    **orders.RULES,
    **seeds.RULES,
    **values.RULES,
    **torch_calls.RULES,
    **stream_waits.RULES,
}
"""Rule -> function that proposes its changes for a region of code."""
_FRESH = (*NUMPY.fresh, *PYTHON.fresh)
_ORDERS = (Cause.HASH_ORDER, Cause.UNKNOWN)
_NOTHING = "no change is sure to be the right one"


@dataclass(frozen=True)
class Proposal:
    """Proposed patches for some findings.

    Args:
        patches: the patches, to be tried in this order.
        refusals: the lines left alone, each with its reason.
    """

    patches: tuple[Patch, ...]
    refusals: tuple[str, ...]


@dataclass
class _Draft:
    """The changes collected for one patch.

    Args:
        changes: changes by file.
        script: lines that are needed at the head of the script.
        early: whether those go before the first import of a module of the project.
    """

    changes: dict[str, list[Change]] = field(default_factory=dict)
    script: list[Need] = field(default_factory=list)
    early: bool = False

    def merged(self, other: _Draft | None) -> _Draft:
        """Return the changes of this draft and of another."""
        if other is None:
            return self
        paths = [*self.changes, *(path for path in other.changes if path not in self.changes)]
        both = {path: [*self.changes.get(path, ()), *other.changes.get(path, ())] for path in paths}
        return _Draft(both, [*self.script, *other.script], self.early or other.early)


def propose(
    findings: Sequence[Finding], project: Project, most: int | None = None, interventions: Iterable[str] = ()
) -> Proposal:
    """Return the patches that may remove the origins.

    Args:
        findings: the origins.
        project: the files of the user.
        most: the largest number of ways to remove each origin; None for all.
        interventions: names of interventions that were needed too; a seed for a library that has no
            finding is part of every patch.
    """
    sources = ProjectSyntax(project)
    refusals: list[str] = []
    more = _Draft(
        script=[
            NEED_OF_INTERVENTION[name]
            for name in without_finding(findings, interventions)
            if name in NEED_OF_INTERVENTION
        ]
    )
    drafts = [list(islice(_drafts(sources, finding, refusals), most)) for finding in findings]
    patches: dict[tuple[bytes, ...], Patch] = {}
    for column in [*zip_longest(*drafts)] or [()]:
        together = more
        for row, draft in enumerate(column):
            together = together.merged(draft or (drafts[row][-1] if drafts[row] else None))
        patch = _patch(sources, together, refusals)
        if patch is not None:
            patches.setdefault(tuple(file.after.data for file in patch.files), patch)
    return Proposal(tuple(patches.values()), tuple(dict.fromkeys(refusals)))


def without_finding(findings: Sequence[Finding], interventions: Iterable[str]) -> list[str]:
    """Return the interventions for whose causes there is no finding."""
    known = {finding.cause for finding in findings}
    return [name for name in interventions if known.isdisjoint(causes_shown_by(name))]


def _drafts(sources: ProjectSyntax, finding: Finding, refusals: list[str]) -> Iterator[_Draft]:
    """Yield the ways to remove one origin; if interventions showed its cause, first without other sources."""
    own = tuple(source for source in finding.origin.sources if source.cause == finding.cause)
    if finding.diagnosis.confirmed_by and own != finding.origin.sources:
        yield from _drafts(sources, finding.with_sources(own), [])
    sites = _sites(finding.origin)
    refusals += [reason for site in sites if (reason := sources.refusal(site.file))]
    n_before, empty = len(refusals), True
    for draft in _ways(sources, finding, sites, refusals):
        if draft.changes or draft.script:
            empty = False
            yield draft
    if empty and len(refusals) == n_before:
        refusals.append(specification_of(finding.cause).no_patch or _NOTHING)


def _ways(
    sources: ProjectSyntax, finding: Finding, sites: list[Site], refusals: list[str]
) -> Iterator[_Draft]:
    causes = {finding.cause, *(source.cause for source in finding.origin.sources)}
    nearby = attempts(causes, Reach.NEARBY, Reach.ANYWHERE)
    if _is_other_seed(finding):
        nearby = [*attempts(causes, Reach.UNKNOWN_SEED), *nearby]
    block = _seed_needs(finding)
    early = any(site.function == "<module>" and site.file != sources.project.script for site in sites)
    near = _changes(sources, nearby, named_lines(sources, sites), refusals)
    _add_seeded_calls(sources, finding, near, refusals)
    yield _Draft(near, block if _global_draw(finding.origin) else [], early)
    yield _Draft({}, block, early)
    lines = lines_behind(sources, sites)
    yield _Draft(_changes(sources, nearby, lines, refusals), [], early)
    if causes & set(_ORDERS):  # elements that cannot be sorted keep the order in which they came
        unsorted = attempts({Cause.ID_ORDER}, Reach.NEARBY, Reach.ANYWHERE)
        yield _Draft(_changes(sources, unsorted, lines, []), [], early)
    everywhere = all_lines(sources, [*lines, sources.project.script])
    yield _Draft(_changes(sources, attempts(causes, Reach.ANYWHERE), everywhere, []), [], early)
    yield _Draft(_changes(sources, attempts(causes, Reach.LAST_RESORT), everywhere, []), block, early)


def attempts(causes: Iterable[Cause], *reaches: Reach) -> list[Attempt]:
    """Return the rules for some causes within some reaches, each with the cause that it is tried for."""
    return [
        (cause, rule) for cause in sorted(causes) for rule in specification_of(cause).patch_rules(*reaches)
    ]


def _add_seeded_calls(
    sources: ProjectSyntax, finding: Finding, changes: dict[str, list[Change]], refusals: list[str]
) -> None:
    """Add seeds for the generators that libraries made for the user's line."""
    seed = usual_seed(sources.syntax(sources.project.script))
    for path, change in seeds.seeded_calls(sources, finding, seed):
        if isinstance(change, Refusal):
            refusals.append(_described(path, change))
        else:
            changes.setdefault(path, []).append(change)


def _described(path: str, change: Change | Refusal) -> str:
    return f"{os.path.basename(path)}:{change.line}: {change.why}"


def _sites(origin: Origin) -> list[Site]:
    given = [source.site for source in origin.sources]
    given += [origin.site, origin.other_site, origin.forward_site]
    return list(dict.fromkeys(site for site in given if site is not None))


def _is_other_seed(finding: Finding) -> bool:
    """Tell whether a generator got another seed in each run, and no draw shows its origin."""
    seeded = finding.origin.kind == EventKind.RNG and finding.origin.op == "seed"
    return seeded and not finding.origin.sources and bool(library_of(finding.cause))


def _seed_needs(finding: Finding) -> list[Need]:
    if _is_other_seed(finding):  # the script seeds it after its head
        return []
    own = [source for source in finding.origin.sources if source.cause == finding.cause]
    # No seed of another generator reaches a generator of its own.
    if own and all(source.op.startswith(_FRESH) for source in own):
        return []
    libraries = [library_of(finding.cause), *(library_of(source.cause) for source in finding.origin.sources)]
    return [Need(NeedKind.SEED, library) for library in dict.fromkeys(libraries) if library]


def _global_draw(origin: Origin) -> bool:
    """Tell whether a global generator was drawn from, not only a new one made without a seed."""
    drawn = [source for source in origin.sources if library_of(source.cause)]
    return any(not source.op.startswith(_FRESH) for source in drawn) if drawn else False


def _changes(
    sources: ProjectSyntax, tried: Iterable[Attempt], lines: Lines, refusals: list[str]
) -> dict[str, list[Change]]:
    """Return the changes that rules propose on some lines."""
    changes: dict[str, list[Change]] = {}
    for path, numbers in lines.items():
        for change in _on_lines(sources, tried, path, frozenset(numbers)):
            if isinstance(change, Refusal):
                refusals.append(_described(path, change))
            else:
                changes.setdefault(path, []).append(change)
    return changes


def _on_lines(
    sources: ProjectSyntax, tried: Iterable[Attempt], path: str, numbers: frozenset[int]
) -> Iterator[Change | Refusal]:
    syntax = sources.syntax(path)
    if syntax is None:
        return
    seed = usual_seed(sources.syntax(sources.project.script))
    for cause, rule in tried:
        yield from RULES[rule](CodeRegion(syntax, numbers, cause, seed))


def _patch(sources: ProjectSyntax, draft: _Draft, refusals: list[str]) -> Patch | None:
    """Return the patch of a draft; None if it changes nothing or the result is not valid Python."""
    edits: dict[str, list[Edit]] = {}
    why: list[str] = []
    needs = list(draft.script)
    for path, changes in draft.changes.items():
        for change in _compatible(changes):
            edits.setdefault(path, []).extend(change.edits)
            why.append(_described(path, change) if change.line else change.why)
            own = path == sources.project.script
            needs += [need for need in change.needs if own or need.kind is not NeedKind.IMPORT]
            edits[path] += _imports(sources, path, change)
    _add_head(sources, needs, edits, why, refusals, early=draft.early)
    files = [_patched(sources, path, some) for path, some in edits.items() if some]
    changed = [file for file in files if file is not None and file.before != file.after]
    if not changed or len(changed) != len([some for some in edits.values() if some]):
        return None
    return Patch(tuple(changed), tuple(dict.fromkeys(why)), changed_line(changed[0].before, changed[0].after))


def _add_head(
    sources: ProjectSyntax,
    needs: Sequence[Need],
    edits: dict[str, list[Edit]],
    why: list[str],
    refusals: list[str],
    *,
    early: bool,
) -> None:
    """Add the seeds and switches that go into the script."""
    script = sources.project.script
    syntax = sources.syntax(script)
    if all(need.kind is NeedKind.IMPORT for need in needs):
        return
    if syntax is None:
        refusals.append(sources.refusal(script) or "there is no script to put seeds into")
        return
    edit = head_edit(sources, syntax, needs, early=early)
    if isinstance(edit, str):
        refusals.append(edit)
    elif edit is not None:
        edits.setdefault(script, []).append(edit)
        seeded = ", ".join(need.module for need in dict.fromkeys(needs) if need.kind is NeedKind.SEED)
        why += [f"{os.path.basename(script)}: seed {seeded}"] if seeded else []


def _imports(sources: ProjectSyntax, path: str, change: Change) -> list[Edit]:
    syntax = sources.syntax(path)
    modules = [need.module for need in change.needs if need.kind is NeedKind.IMPORT]
    edits = [import_edit(syntax, module) for module in modules] if syntax is not None else []
    return [edit for edit in edits if edit is not None]


def _compatible(changes: Iterable[Change]) -> Iterator[Change]:
    """Yield the changes, without those that touch text that an earlier one replaces."""
    taken: list[Edit] = []
    for change in dict.fromkeys(changes):
        if not any(_clash(edit, other) for edit in change.edits for other in taken):
            taken += change.edits
            yield change


def _clash(edit: Edit, other: Edit) -> bool:
    if edit.start == edit.end and other.start == other.end:
        return edit == other  # the same text inserted twice
    return edit.start < other.end and other.start < edit.end


def _patched(sources: ProjectSyntax, path: str, edits: list[Edit]) -> PatchedFile | None:
    file = sources.project.file(path)
    if file is None:
        return None
    after = spliced(file, edits)
    return PatchedFile(file, after) if _is_python(after) else None


def _is_python(file: SourceFile) -> bool:
    try:
        ast.parse(file.text)
    except SyntaxError:
        return False
    return True
