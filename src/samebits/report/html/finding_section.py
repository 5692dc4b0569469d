"""The sections on a difference: where it came in, why, its values side by side, what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.causes import Cause
from samebits.records.kinds import EventKind
from samebits.report import evidence
from samebits.report.html.document import Block, Code, CodeLine, Facts, Items, Paragraph, Section, Table
from samebits.report.origin_words import headline, inputs_text, outputs_text, values_text
from samebits.report.remedy import (
    CHANGED_SINCE,
    Sources,
    fix_outcome,
    has_changed,
    shown_site,
    source_lines,
    trial_words,
)
from samebits.report.sentences import why
from samebits.report.style import number, shown_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits._runtime.frames import Site
    from samebits.comparison.difference import ElementPair
    from samebits.comparison.results import Comparison, Finding, LineChange, Remedy
    from samebits.verification.results import Fix, Verification

_AROUND = 3
_MOST_OTHERS = 20
_MOST_DIFF_LINES = 400
_MOST_REPORTED = 40


def origin_section(result: Verification, elements: Sequence[ElementPair], sources: Sources) -> Section | None:
    """Show the first origin: its line, what came out, its cause and the evidence."""
    comparison = result.comparison
    if not comparison.findings:
        return None
    first, other = comparison.findings[0], max(2, len(result.compared))
    blocks = finding_blocks(first, other, elements, sources, likely=result.quick)
    title = "The first difference" if first.origin.events != (None, None) else "What differs first"
    return Section("origin", title, tuple(blocks))


def finding_blocks(
    finding: Finding, other: int, elements: Sequence[ElementPair], sources: Sources, *, likely: bool = False
) -> list[Block]:
    """Show one origin: its line, what came out, its cause and the evidence.

    Args:
        finding: the origin.
        other: the run that differs from run 1; 0 for an operation that was executed again in one run.
        elements: its first elements that differ, where they were captured.
        sources: which source files may be shown.
        likely: mark a cause that no run has proven.
    """
    blocks: list[Block] = [Paragraph(headline(finding.origin)), *_lines(finding, other, sources)]
    return [*blocks, *_outcome(finding, other, elements), *_reasons(finding, likely=likely, yet=sources.own)]


def _lines(finding: Finding, other: int, sources: Sources) -> list[Block]:
    """Show the source line of the origin, and those that belong to it."""
    origin, blocks = finding.origin, list[Block]()
    if origin.site is None:
        blocks.append(Paragraph("It came from outside Python: no line was found."))
    seen: list[tuple[str, int]] = []  # a lambda and its caller may share a line
    second = origin.of_second
    for label, site, of_second in (
        ("", origin.site, second),
        ("entered at ", origin.entered_site, second),
        ("backward of ", origin.forward_site, second),
        (f"in run {1 if second else other} at ", origin.other_site, not second),
    ):
        if site is not None and (site.file, site.line) not in seen:
            blocks.append(quoted(site, sources, label, of_second=of_second))
            seen.append((site.file, site.line))
    return blocks


def quoted(site: Site, sources: Sources, label: str = "", *, of_second: bool = False) -> Block:
    """Return a line of source with those around it; only its place where the file may not be shown."""
    place = f"{label}{shown_site(site, sources.folder)}"
    if has_changed(site, sources, of_second=of_second):
        return Paragraph(f"{place} {CHANGED_SINCE}")
    lines = source_lines(site, sources, _AROUND, of_second=of_second)
    if not lines:
        return Paragraph(place)
    width = len(str(lines[-1][0]))
    shown = (f"{'>' if line == site.line else ' '} {line:{width}}  {text}" for line, text in lines)
    return Code(place, tuple(CodeLine(text) for text in shown))


def _outcome(finding: Finding, other: int, elements: Sequence[ElementPair]) -> list[Block]:
    """Show what went in and what came out, and the values side by side where they were captured."""
    origin = finding.origin
    out = "first draw" if origin.kind == EventKind.RNG else "what came out"
    rows = [("what went in", inputs_text(origin)), (out, outputs_text(finding))]
    difference = origin.difference
    if difference is not None and difference.values is not None and not elements:
        rows.append(("values", values_text(difference, other)))
    if origin.other_op and origin.other_op != origin.op:
        rows.append((f"in run {1 if origin.of_second else other}", f"{origin.other_op} instead"))
    blocks: list[Block] = [Facts(tuple(row for row in rows if row[1]))]
    if elements:
        blocks.append(_elements(elements, other, difference.elements if difference else len(elements)))
    return blocks


def _elements(elements: Sequence[ElementPair], other: int, differing: int) -> Table:
    columns = 4 if any(pair.ulp is not None for pair in elements) else 3
    rows = tuple(
        (str(list(pair.index)), pair.first, pair.second, "" if pair.ulp is None else number(pair.ulp))[
            :columns
        ]
        for pair in elements
    )
    return Table(
        "Values side by side: the first elements that differ",
        ("index", "run 1", f"run {other}", "ULP")[:columns], rows, numbers=frozenset({1, 2, 3}),
        left_out=max(0, differing - len(rows)),
    )  # fmt: skip


def _reasons(finding: Finding, *, likely: bool, yet: bool) -> list[Block]:
    unproven = likely and not finding.diagnosis.confirmed_by
    known = finding.cause != Cause.UNKNOWN
    unknown = "not known yet" if yet else "not known"  # further runs may find it
    cause = f"{finding.cause}{' (not proven yet)' if unproven else ''}" if known else unknown
    rows = [("cause", cause), ("why", why(finding))]
    seen = evidence.sentences(finding.diagnosis.evidence)
    return [Facts(tuple(rows)), *([Items(tuple(seen))] if seen else [])]


def remedy_section(result: Verification, folder: str) -> Section | None:
    """Show what to change, whether that was run, and the patch."""
    findings = result.comparison.findings
    remedy = findings[0].remedy if findings else None
    blocks: list[Block] = (
        [] if remedy is None else remedy_blocks(remedy, folder, with_lines=result.fix is None)
    )
    if result.fix is not None:
        blocks += _fix(result.fix, folder)
    return Section("remedy", "What to change", tuple(blocks)) if blocks else None


def remedy_blocks(remedy: Remedy, folder: str, *, with_lines: bool) -> list[Block]:
    """Show what to change, and whether that was run.

    Args:
        remedy: what is proposed.
        folder: paths are shown relative to it.
        with_lines: show the lines too, where no patch does.
    """
    rows = [("remedy", remedy.text)]
    rows += [trial_words(remedy.trial)] if remedy.trial is not None else []
    if remedy.controls:
        rows.append(
            ("without a change", f"samebits run {' '.join(f'--pin {name}' for name in remedy.controls)}")
        )
    changes = [_change(change, folder) for change in remedy.changes] if with_lines else []
    return [Facts(tuple(rows)), *changes]


def _change(change: LineChange, folder: str) -> Code:
    lines = [CodeLine(f"- {line}", "-") for line in change.before]
    lines += [CodeLine(f"+ {line}", "+") for line in change.after]
    return Code(f"{shown_path(change.file, folder)}:{change.line}", tuple(lines))


def _fix(fix: Fix, folder: str) -> list[Block]:
    blocks: list[Block] = [Facts((("patch", fix_outcome(fix)),))]
    diff = fix.diff.decode(errors="replace").splitlines()
    if diff:
        blocks.append(Code("", tuple(_diff_line(line) for line in diff[:_MOST_DIFF_LINES])))
    if len(diff) > _MOST_DIFF_LINES:
        blocks.append(
            Paragraph(f"The patch has {len(diff)} lines; {shown_path(fix.diff_file, folder)} has all.")
        )
    if fix.refusals:
        texts = tuple(f"not changed: {why}" for why in fix.refusals[:_MOST_OTHERS])
        blocks.append(Items(texts, left_out=len(fix.refusals) - len(texts)))
    return blocks


def _diff_line(line: str) -> CodeLine:
    if line.startswith(("+++", "---", "@@")):
        return CodeLine(line, "@")
    return (
        CodeLine(line, "+") if line.startswith("+") else CodeLine(line, "-" if line.startswith("-") else "")
    )


def others_section(comparison: Comparison, folder: str) -> Section | None:
    """List the other differences."""
    others = comparison.findings[1:]
    if not others:
        return None
    rows = tuple(_other(finding, folder) for finding in others[:_MOST_OTHERS])
    table = Table(
        "Other places where a difference came in", ("what", "line", "cause"), rows,
        left_out=len(others) - len(rows),
    )  # fmt: skip
    return Section("others", "Also different", (table,))


def _other(finding: Finding, folder: str) -> tuple[str, ...]:
    origin = finding.origin
    line = "" if origin.site is None else shown_site(origin.site, folder)
    return headline(origin), line, "" if finding.cause == Cause.UNKNOWN else finding.cause


def reported_section(comparison: Comparison, sources: Sources) -> Section | None:
    """List the lines whose values differ though the training does not."""
    listed = comparison.reported
    if not listed:
        return None
    blocks: list[Block] = [Paragraph("Nothing that was trained or saved depends on these values.")]
    for finding in listed[:_MOST_REPORTED]:
        if finding.origin.site is not None:
            blocks.append(quoted(finding.origin.site, sources))
        blocks.append(Items(tuple(evidence.sentences(finding.diagnosis.evidence))))
    if len(listed) > _MOST_REPORTED:
        blocks.append(Paragraph(f"and {len(listed) - _MOST_REPORTED} more"))
    return Section("reported", "Values that are only reported", tuple(blocks))
