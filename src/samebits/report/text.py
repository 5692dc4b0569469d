"""The report as text: what differed first, in which line, by how much, and what to do next."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits._text.printable import printable
from samebits.causes import Cause, OriginKind
from samebits.comparison.replayed import Rerun
from samebits.records.kinds import EventKind
from samebits.report import evidence
from samebits.report.notes import gathered, sentences
from samebits.report.origin_words import headline, inputs_text, outputs_text, values_text
from samebits.report.remedy import Sources, fix_lines, quotation, remedy_lines, shown_site
from samebits.report.sentences import skipped_lines, summary_text, why
from samebits.report.style import Style, row, shown_path
from samebits.report.verdict_text import is_listed, reported_lines, verdict_lines
from samebits.verification.results import Purpose

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from samebits._runtime.frames import Site
    from samebits.comparison.results import Comparison, Finding
    from samebits.verification.results import Verification

_MOST_FINDINGS = 4
NO_CELLS: Mapping[str, tuple[str, ...]] = {}
"""For a program that is no notebook."""
_MOST_NOTES = 4
_NOTE_LINES = 2


def render(
    result: Verification,
    style: Style,
    folder: str,
    *,
    verbose: bool = False,
    cells: Mapping[str, tuple[str, ...]] = NO_CELLS,
) -> str:
    """Return the whole report.

    Args:
        result: of the verification.
        style: colour and width.
        folder: paths are shown relative to it.
        verbose: include all evidence.
        cells: see `Sources`.
    """
    return joined(blocks(result, style, folder, verbose=verbose, cells=cells))


@dataclass(frozen=True)
class Block:
    """The lines of one part of a report.

    Args:
        lines: the lines.
        glued: no empty line separates them from the block before.
    """

    lines: tuple[str, ...]
    glued: bool = False


def joined(blocks: Sequence[Block], told: Collection[Block] = ()) -> str:
    """Join blocks to one text.

    Args:
        blocks: of a report.
        told: blocks that were printed already, and are left out.
    """
    lines: list[str] = []
    glue = not told
    for block in blocks:
        if block in told or not block.lines:
            glue = False
            continue
        lines += block.lines if glue and (block.glued or not lines) else ("", *block.lines)
        glue = True
    return "\n".join(lines)


def first_answer(result: Verification, style: Style, folder: str) -> list[Block]:
    """Return the verdict, and the origin with its likely cause, before anything is proven.

    Args:
        result: what is known so far; without operations, only the verdict is returned.
        style: colour and width.
        folder: paths are shown relative to it.
    """
    known = blocks(result, style, folder, likely=True)
    return known[:3] if result.comparison.findings and result.localised else known[:1]


def blocks(
    result: Verification,
    style: Style,
    folder: str,
    *,
    verbose: bool = False,
    likely: bool = False,
    cells: Mapping[str, tuple[str, ...]] = NO_CELLS,
) -> list[Block]:
    """Return the report in blocks: the verdict, the first origin, its cause, what to do, and the rest.

    Args:
        result: of the verification.
        style: colour and width.
        folder: paths are shown relative to it.
        verbose: include all evidence.
        likely: mark a cause that no run has proven.
        cells: see `Sources`.
    """
    comparison = result.comparison
    replaced = result.fix.replaced() if result.fix is not None else {}
    code = result.code
    sources = Sources(folder, own=bool(result.seconds), replaced=replaced, cells=cells, code=code)
    report = [_block([*verdict_lines(result, style), *reported_lines(comparison, style, sources)])]
    if comparison.findings and not is_listed(comparison):
        first, other = comparison.findings[0], len(result.compared)
        report += _first(first, other, style, sources, verbose=verbose, likely=likely or result.quick)
        own, following = _parted(comparison.findings, verbose=verbose)
        for title, findings in _divided(own):
            report.append(_block(_others(title, findings, style, folder)))
        report.append(_block(_consequences(following, style)))
    more = [
        fix_lines(result.fix, style, folder) if result.fix is not None else [],
        _replayed(comparison, style, sources, verbose=verbose),
        _notes(comparison, style, folder, verbose=verbose),
        _runs(result, style, folder),
        _each_run(result, folder) if verbose and result.seconds else [],
    ]
    return [*report, *map(_block, more)]


def _block(lines: list[str]) -> Block:
    return Block(tuple(lines[1:] if lines and not lines[0] else lines))


def _first(
    finding: Finding, other: int, style: Style, sources: Sources, *, verbose: bool, likely: bool
) -> list[Block]:
    """Return the first origin, why it differs, and what to do; `other` is the run that differs from run 1."""
    everything = verbose or finding.cause == Cause.UNKNOWN or finding.origin.kind == Rerun.REPLAY
    reasons = _why(finding, everything=everything, likely=likely, yet=sources.own)
    remedy = remedy_lines(finding.remedy, style, sources.folder) if finding.remedy is not None else []
    return [
        Block(tuple(_origin(finding, other, style, sources, everything=everything))),
        Block(tuple(_rows_of(reasons, style, sources)), glued=True),
        Block(tuple(remedy), glued=True),
    ]


def _origin(
    finding: Finding,
    other: int,
    style: Style,
    sources: Sources,
    *,
    everything: bool,
) -> list[str]:
    """Return the site of the origin, and its output."""
    origin = finding.origin
    title = "does not repeat" if origin.kind == Rerun.REPLAY else "first difference"
    second = origin.of_second
    lines = [*style.titled(title, headline(origin)), *_quoted("", (origin.site, second), style, sources)]
    shown = [_place(origin.site)]
    for label, site, of_second in (
        ("entered at", origin.entered_site, second),
        ("backward of", origin.forward_site, second),
        (f"in run {1 if second else other} at", origin.other_site, not second),
    ):
        if site is not None and _place(site) not in shown:
            lines += _quoted(label, (site, of_second), style, sources)
            shown.append(_place(site))
    return [*lines, "", *_rows_of(_outcome(finding, other, everything=everything), style, sources)]


def _place(site: Site | None) -> tuple[str, int] | None:
    """Return the line of a site, which several functions may share, such as a lambda and its caller."""
    return None if site is None else (site.file, site.line)


def _rows_of(rows: list[tuple[str, str]], style: Style, sources: Sources) -> list[str]:
    shown = [(label, text.replace(sources.folder + os.sep, "")) for label, text in rows if text]
    return [line for label, text in shown for line in row(label, text, style)]


def _quoted(label: str, line: tuple[Site | None, bool], style: Style, sources: Sources) -> list[str]:
    """Return the site, and the source line itself; with the site, whether it is of the second run."""
    site, of_second = line
    if site is None:
        return [f"  {style.paint('outside Python: no line was found', 'dim')}"] if not label else []
    prefix = f"{label} " if label else ""
    place = "  " + style.paint(prefix + shown_site(site, sources.folder), "dim")
    return [place, *quotation(site, sources, style, of_second=of_second)]


def _outcome(finding: Finding, other: int, *, everything: bool) -> list[tuple[str, str]]:
    origin = finding.origin
    out = "first draw" if origin.kind == EventKind.RNG else "what came out"
    rows = [("what went in", inputs_text(origin))] if everything else []
    rows.append((out, outputs_text(finding)))
    if origin.difference is not None and origin.difference.values is not None:
        rows.append(("", values_text(origin.difference, other)))
    if origin.other_op and origin.other_op != origin.op:
        rows.append((f"in run {1 if origin.of_second else other}", f"{origin.other_op} instead"))
    return rows


def _why(finding: Finding, *, everything: bool, likely: bool, yet: bool) -> list[tuple[str, str]]:
    """Return the cause and the evidence for it; `yet` is whether further runs may find it."""
    likely = likely and not finding.diagnosis.confirmed_by
    if finding.cause == Cause.UNKNOWN:
        cause = ("cause", "not known yet" if yet else "not known")
    else:
        cause = ("likely cause", f"{finding.cause} (not proven yet)") if likely else ("cause", finding.cause)
    return [
        cause,
        ("why", why(finding)),
        *(("", f"- {line}") for line in evidence.sentences(finding.diagnosis.evidence) if everything),
    ]


def _parted(
    findings: tuple[Finding, ...], *, verbose: bool
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Divide the findings into those to list and those to count.

    After the runs took different branches, everything may differ for that reason alone.
    """
    first, *others = findings
    if verbose or first.origin.origin_kind != OriginKind.CONTROL_FLOW:
        return findings, ()
    following = tuple(each for each in others if each.cause == Cause.UNKNOWN)
    return tuple(each for each in findings if each not in following), following


def _consequences(findings: Sequence[Finding], style: Style) -> list[str]:
    if not findings:
        return []
    many = "difference comes" if len(findings) == 1 else "differences come"
    text = f"{len(findings)} further {many} after the runs diverged, and may follow from that"
    return style.wrap(f"{text}{style.interface.only(' (--verbose lists them)')}", hanging=2)


def _divided(findings: tuple[Finding, ...]) -> list[tuple[str, list[Finding]]]:
    """Group the findings after the first by their causes."""
    first, *others = findings
    alike = [each for each in others if each.cause == first.cause != Cause.UNKNOWN]
    rest = [each for each in others if each not in alike]
    apart = [each for each in rest if Cause.UNKNOWN not in (each.cause, first.cause)]
    why = "for the same reason" if first.diagnosis.confirmed_by else "by the same cause"
    return [
        (f"also different {why}", alike),
        ("also different for another reason", apart),
        ("also different", [each for each in rest if each not in apart]),
    ]


def _others(title: str, findings: Sequence[Finding], style: Style, folder: str) -> list[str]:
    if not findings:
        return []
    lines = ["", style.paint(title, "bold")]
    for finding in findings[:_MOST_FINDINGS]:
        where = f", {shown_site(finding.origin.site, folder)}" if finding.origin.site is not None else ""
        cause = f" ({finding.cause})" if finding.cause != Cause.UNKNOWN else ""
        lines += style.wrap(f"{headline(finding.origin)}{where}{cause}", indent=2, hanging=4)
    if len(findings) > _MOST_FINDINGS:
        lines.append(
            f"  ... and {len(findings) - _MOST_FINDINGS} more{style.interface.only(' (--json lists all)')}"
        )
    return lines


def _replayed(comparison: Comparison, style: Style, sources: Sources, *, verbose: bool) -> list[str]:
    """Return the operations that did not repeat, and how many were executed again."""
    if comparison.replayed is None:
        return []
    lines: list[str] = []
    findings = comparison.replayed.findings
    for finding in findings[:_MOST_FINDINGS]:
        lines += ["", joined(_first(finding, 0, style, sources, verbose=verbose, likely=False))]
    if len(findings) > _MOST_FINDINGS:
        lines.append(
            f"  ... and {len(findings) - _MOST_FINDINGS} more{style.interface.only(' (--json lists all)')}"
        )
    summary = comparison.replayed.summary
    texts = [summary_text(summary), *(f"- {line}" for line in skipped_lines(summary))]
    lines.append("")
    for label, text in zip(["replay", *[""] * len(texts)], texts, strict=False):
        lines += row(label, text, style)
    return lines


def _notes(comparison: Comparison, style: Style, folder: str, *, verbose: bool) -> list[str]:
    if not comparison.notes:
        return []
    lines, most = [""], None if verbose else _MOST_NOTES
    notes = sentences(comparison.notes) if verbose else gathered(comparison.notes)
    for note in notes[:most]:
        text = printable(note.replace(folder + os.sep, ""))
        shown = style.wrap(f"note: {text}", hanging=6)
        lines += shown if verbose else _cut(shown, style)
    if not verbose and len(notes) > _MOST_NOTES:
        lines.append(f"and {len(notes) - _MOST_NOTES} more notes{style.interface.only(' (--verbose)')}")
    return lines


def _cut(lines: list[str], style: Style) -> list[str]:
    """Shorten a note to two lines."""
    if len(lines) <= _NOTE_LINES:
        return lines
    first, more = lines[:_NOTE_LINES], f" ...{style.interface.only(' (--verbose)')}"
    words = first[-1]
    while len(words) + len(more) > style.width and " " in words.strip():
        words = words.rpartition(" ")[0]
    return [*first[:-1], words + more]


def _runs(result: Verification, style: Style, folder: str) -> list[str]:
    digests = result.comparison.final_digest
    rows = [("final digest", digests[0])] if result.comparison.verdict == "identical" else []
    rows.append(("runs", _run_counts(result)))
    if result.runs and result.seconds:
        rows.append(("records", _shown(os.path.dirname(result.runs[0].record), folder)))
        rows.append(("next", _next(result, folder)))
    lines = [""]
    for label, text in rows:
        if text:
            lines += row(label, text, style)
    return lines if len(lines) > 1 else []


def _each_run(result: Verification, folder: str) -> list[str]:
    rows = [
        f"  {_shown(run.record, folder)}  {run.seconds:.1f} s, status {run.status}"
        + ("" if run.has_record else ", record removed (--keep saves it)")
        for run in result.runs
    ]
    return ["", *rows]


def _run_counts(result: Verification) -> str:
    words = {
        Purpose.PREPARE: "to write files that the others read",
        Purpose.COMPARE: "to compare",
        Purpose.LOCALISE: "to find the operation",
        Purpose.EXCUSE: "without memory that nothing read",
        Purpose.REPLAY: "to execute operations again",
        Purpose.CAPTURE: "to continue with equal values",
        Purpose.AGAIN: "to see the difference again",
        Purpose.INTERVENE: "with something pinned",
        Purpose.FIX: "to try a patch",
        Purpose.CROWDED: "repeated one after the other",
    }
    if not result.seconds:
        return ""
    counts = {purpose: sum(run.purpose == purpose for run in result.runs) for purpose in words}
    parts = [f"{count} {words[purpose]}" for purpose, count in counts.items() if count]
    purposes = f": {', '.join(parts)}" if len(parts) > 1 else ""
    return f"{len(result.runs)} in {result.seconds:.0f} s{purposes}"


def _next(result: Verification, folder: str) -> str:
    """Return the command that shows every operation of the step."""
    findings = result.comparison.findings
    records = [run.record for run in result.runs if run.purpose == Purpose.LOCALISE]
    if result.comparison.verdict != "different" or not findings or not records:
        return ""
    step = f" --step {findings[0].origin.step}" if findings[0].origin.step is not None else ""
    return f"samebits show {_shown(records[-1], folder)} --events op{step}"


def _shown(path: str, folder: str) -> str:
    return printable(shown_path(path, folder))
