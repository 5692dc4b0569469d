"""The remedy for a finding: what to change, and which controls of `samebits run` do the same."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.comparison.results import Remedy, place
from samebits.determinism.op_advice import ADVICE
from samebits.diagnosis.patches.propose import propose
from samebits.diagnosis.patches.region import Sources
from samebits.diagnosis.remedy_table import BY_LIBRARY, row_for

if TYPE_CHECKING:
    from samebits.comparison.results import Comparison, Finding
    from samebits.diagnosis.patches.source_file import Project

_WORKERS = "worker"
_UNSEEN_CALLS = {
    "hash-order": ("builtins.hash",),
    "id-order": ("builtins.id", "builtins.repr"),
}
_MADE = ("random.Random", "numpy.random.SeedSequence")
_SHOWN = 4  # findings whose change is shown on the user's own line


def remedy_for(finding: Finding, project: Project | None = None) -> Remedy | None:
    """What to change so that a difference goes; None where the cause is not known.

    Args:
        finding: the origin.
        project: the user's files, to show the change on the user's own line; None leaves it out.
    """
    source = _source(finding, project)
    if _is_made_by_library(source, finding, project):
        source = BY_LIBRARY
    row = row_for(finding.cause, source, in_worker=_in_worker(finding))
    if row is None:
        return None
    remedy = Remedy(_with_place(row.text, finding), controls=row.controls)
    patches = propose([finding], project, most=1).patches if project is not None else ()
    if not patches:
        return remedy
    before, after = patches[0].first
    return replace(remedy, before=before, after=after)


def with_remedies(comparison: Comparison, project: Project | None = None) -> Comparison:
    """The comparison with a remedy for each finding that has none yet."""
    findings = tuple(
        finding
        if finding.remedy is not None
        else replace(finding, remedy=remedy_for(finding, project if number < _SHOWN else None))
        for number, finding in enumerate(comparison.findings)
    )
    return replace(comparison, findings=findings)


def op_advice(op: str) -> str:
    """What to use in place of an op that has no deterministic kernel, by its name in torch; else empty."""
    name = op.partition("::")[2].partition(".")[0].lower()
    words = {word for word in name.split("_") if word} - {"backward"}
    for advice in ADVICE:
        known = set(re.split(r"[^a-z0-9]+|_", advice.pattern.lower()))
        if words and words <= known and "mps" not in known and "MPS" not in advice.op:
            return advice.instead
    return ""


def _source(finding: Finding, project: Project | None) -> str:
    """What gave the evidence: the first draw of the finding's cause, else a call on its line, else the op."""
    drawn = (source.op for source in finding.sources if source.cause == finding.cause)
    return next(drawn, "") or _called(finding, project) or finding.op or ""


def _is_made_by_library(source: str, finding: Finding, project: Project | None) -> bool:
    """Whether a library made a new generator for what the user's line calls."""
    names = _calls(finding, project) if source in _MADE else []
    return bool(names) and not any(name.startswith(("random.", "numpy.random.", "?.")) for name in names)


def _called(finding: Finding, project: Project | None) -> str:
    """What the line calls that no draw shows, such as `builtins.hash`."""
    unseen = _UNSEEN_CALLS.get(finding.cause, ())
    names = _calls(finding, project) if unseen else []
    return next((name for name in names if name in unseen), "")


def _calls(finding: Finding, project: Project | None) -> list[str]:
    """The full names of what the line of a finding calls, where its file is the user's."""
    if project is None or finding.site is None:
        return []
    syntax = Sources(project).syntax(finding.site.file)
    return [] if syntax is None else [syntax.name(call.func) for call in syntax.calls({finding.site.line})]


def _in_worker(finding: Finding) -> bool:
    return finding.kind == "batch" and any(_WORKERS in line for line in finding.evidence)


def _with_place(text: str, finding: Finding) -> str:
    """The sentence, with the line of the source where that is not the finding's own."""
    drawn = (source for source in finding.sources if source.cause == finding.cause)
    source = next(drawn, None)
    if source is None or source.site is None or source.site == finding.site:
        extra = op_advice(finding.op or "") if finding.cause == "nondeterministic-kernel" else ""
        return f"{text}; or instead of the op: {extra}" if extra else text
    return f"{text} ({source.op} at {place(source.site)})"
