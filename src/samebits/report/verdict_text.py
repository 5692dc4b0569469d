"""The first lines of a report: the verdict, and the values that only differ where they are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits._text.option_names import Interface
from samebits._text.printable import printable
from samebits.causes import Cause, OriginKind
from samebits.records.kinds import EventKind
from samebits.report import evidence
from samebits.report.reasons import sentence_or_none
from samebits.report.remedy import Sources, quotation, shown_site
from samebits.report.style import Style, count, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits.comparison.results import Comparison, Finding, Verdict
    from samebits.verification.results import Verification

COLOURS: Mapping[Verdict, str] = {"identical": "green", "different": "red", "not_judged": "yellow"}
_MOST = 6
_LEAVING_OUT = {
    Interface.COMMAND: " With --state-only the exit status is 0.",
    Interface.CELL: " With --state-only they do not count.",
    Interface.ASSERT_REPEATABLE: " With state_only=True the assertion passes.",
}
_READS = {"repr": "printed", "format": "formatted"}


def verdict_lines(result: Verification, style: Style) -> list[str]:
    """Return the verdict in a sentence."""
    comparison = result.comparison
    if style.state_only and comparison.verdict == "different" and comparison.state == "identical":
        return headline("identical", f"{answer(result)}; --state-only leaves that out", style)
    return headline(comparison.verdict, answer(result), style)


def answer(result: Verification) -> str:
    """Say what was compared, or why the runs differ, or why that could not be judged."""
    say = {"identical": _identical, "different": _different, "not_judged": _not_judged}
    return say[result.comparison.verdict](result)


def headline(verdict: Verdict, text: str, style: Style) -> list[str]:
    """Return the verdict in its colour, followed by what there is to say of it."""
    return style.titled(verdict.replace("_", " "), printable(text), COLOURS[verdict])


def reported_lines(comparison: Comparison, style: Style, sources: Sources) -> list[str]:
    """Return the lines whose values differ though the state is identical, and what to do about it."""
    listed = comparison.reported
    if not listed:
        return []
    lines: list[str] = []
    for finding in listed[:_MOST]:
        lines += _line(finding, style, sources)
    if len(listed) > _MOST:
        lines.append(f"  ... and {len(listed) - _MOST} more{style.interface.only(' (--json lists all)')}")
    leaving_out = "" if style.state_only else _LEAVING_OUT.get(style.interface, "")
    return [*lines, "", *style.wrap(_hint(comparison, sources.folder) + leaving_out, hanging=2)]


def _line(finding: Finding, style: Style, sources: Sources) -> list[str]:
    origin = finding.origin
    where = shown_site(origin.site, sources.folder) if origin.site is not None else "an unknown line"
    how = _READS.get(origin.op or "", origin.op or "read")
    said = [how, *evidence.sentences(finding.diagnosis.evidence)]
    line = "  " + style.paint(f"{where} ({printable('; '.join(said))})", "dim")
    return [line, *quotation(origin.site, sources, style)]


def _hint(comparison: Comparison, folder: str) -> str:
    """Say what a value that is only reported may be."""
    sites = [finding.origin.site for finding in comparison.findings if finding.cause == Cause.WALL_CLOCK]
    times = ", ".join(dict.fromkeys(shown_site(site, folder) for site in sites if site is not None))
    what = f"The time taken at {times} is only reported: a log value. " if times else ""
    rest = "Nothing that was trained or saved depends on these values."
    return f"hint: {what}{rest}"


def _identical(result: Verification) -> str:
    comparison = result.comparison
    parts = [count(len(result.compared), "run"), count(comparison.steps, "step")]
    if result.n_values:
        parts.append(f"{number(result.n_values)} values compared bit for bit")
    replayed = comparison.replayed
    if replayed is not None and replayed.findings:
        verb = "does" if len(replayed.findings) == 1 else "do"
        parts.append(f"but {count(len(replayed.findings), 'operation')} {verb} not repeat")
    return ", ".join(parts)


def _different(result: Verification) -> str:
    which = f"run {len(result.compared)} against run 1: " if len(result.compared) > 2 else ""
    return which + (sentence_or_none(result.comparison.reason) or "the two runs gave different bits")


def _not_judged(result: Verification) -> str:
    return sentence_or_none(result.comparison.reason) or "no reason was given"


def is_listed(comparison: Comparison) -> bool:
    """Tell whether the reported values say everything about the first difference already."""
    first = comparison.findings[0]
    return (
        bool(comparison.reported)
        and first.origin.kind == EventKind.READ
        and first.cause == Cause.UNKNOWN
        and first.origin.origin_kind == OriginKind.NONE
    )
