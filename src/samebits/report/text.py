"""The verdict for people: what differed first, in whose line, by how much, and what to do next."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from samebits.comparison.replayed import KIND as REPLAY
from samebits.diagnosis.sentences import why
from samebits.recording.substitution import NOT_PLACED
from samebits.report.fix import fix_lines
from samebits.report.replay import skipped_lines, summary_text
from samebits.report.source import place, source_line
from samebits.report.style import Style, number, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.comparison.results import Comparison, Finding, Remedy
    from samebits.hooks.frames import Site
    from samebits.recording.distance import Difference
    from samebits.verification.results import Verification

_LABEL = 16  # columns before the text of a row
_MOST_FINDINGS = 4
_MOST_NAMES = 4
_MOST_NOTES = 4
_COLOURS = {"identical": "green", "different": "red", "not_judged": "yellow"}
_OPS = ("op", REPLAY)
_KIND_WORDS = {
    "batch": "a batch of the DataLoader",
    "draw": "a random draw",
    "loss": "the loss",
    "grad": "the gradients",
    "step": "the state after the step",
    "rng": "the random number generators",
    "read": "a value read out of torch",
    "save": "a saved value",
    "collective": "a collective operation",
}


def render(result: Verification, style: Style, folder: str, *, verbose: bool = False) -> str:
    """The whole report.

    Args:
        result: what was found.
        style: colour and width.
        folder: paths are shown relative to it.
        verbose: also what went in, and all evidence.
    """
    comparison = result.comparison
    lines = [*_verdict(result, style)]
    if comparison.findings:
        lines += ["", *_first(comparison.findings[0], len(result.compared), style, folder, verbose=verbose)]
        same, other = _divided(comparison.findings)
        lines += _others("also different for the same reason", same, style, folder)
        lines += _others("also different on its own", other, style, folder)
    lines += fix_lines(result.fix, style, folder) if result.fix is not None else []
    lines += _replayed(comparison, style, folder, verbose=verbose)
    lines += _notes(comparison, style, folder, verbose=verbose)
    lines += _runs(result, style, folder)
    lines += _each_run(result, folder) if verbose else []
    return "\n".join(lines)


def _verdict(result: Verification, style: Style) -> list[str]:
    comparison = result.comparison
    word = comparison.verdict.replace("_", " ")
    text = {"identical": _identical, "different": _different, "not_judged": _not_judged}[comparison.verdict](
        result
    )
    lines = style.wrap(f"{word}: {printable(text)}", hanging=2)
    lines[0] = style.paint(word, "bold", _COLOURS[comparison.verdict]) + lines[0][len(word) :]
    return lines


def _identical(result: Verification) -> str:
    comparison = result.comparison
    parts = [_count(len(result.compared), "run"), _count(comparison.steps, "step")]
    if result.n_values:
        parts.append(f"{number(result.n_values)} values compared bit for bit")
    found = comparison.replayed
    if found is not None and found.findings:
        verb = "does" if len(found.findings) == 1 else "do"
        parts.append(f"but {_count(len(found.findings), 'operation')} {verb} not repeat")
    return ", ".join(parts)


def _different(result: Verification) -> str:
    which = f"run {len(result.compared)} against run 1: " if len(result.compared) > 2 else ""
    return which + (result.comparison.reason or "the two runs gave other bits")


def _not_judged(result: Verification) -> str:
    return result.comparison.reason or "no reason was given"


def _first(
    finding: Finding,
    other: int,
    style: Style,
    folder: str,
    title: str = "first difference",
    *,
    verbose: bool,
) -> list[str]:
    """The first origin; `other` is the number of the run that differs from run 1."""
    lines = style.wrap(f"{title}: {_headline(finding)}", hanging=2)
    lines[0] = style.paint(title, "bold") + lines[0][len(title) :]
    lines += _quoted("", finding.site, style, folder)
    shown = [finding.site]
    for label, site in (
        ("entered at", finding.entered_site),
        ("backward of", finding.forward_site),
        (f"in run {other} at", finding.other_site),
    ):
        if site is not None and site not in shown:
            lines += _quoted(label, site, style, folder)
            shown.append(site)
    lines.append("")
    rows = _rows(finding, other, everything=verbose or finding.cause == "unknown" or finding.kind == REPLAY)
    for label, text in rows:
        lines += _row(label, text.replace(folder + os.sep, ""), style)
    return lines


def _headline(finding: Finding) -> str:
    what = finding.op if finding.kind in _OPS else _KIND_WORDS.get(finding.kind, finding.kind)
    if finding.kind == "rng" and finding.op == "seed":
        what = "a generator is seeded"
    elif finding.kind not in _OPS and finding.op:
        what = f"{what} ({finding.op})"
    parts = [f"step {finding.step}"] if finding.step is not None else []
    parts.append(str(what) + (f" in module {finding.module}" if finding.module else ""))
    return printable(", ".join(parts))


def _quoted(label: str, site: Site | None, style: Style, folder: str) -> list[str]:
    """Where, and the line itself."""
    if site is None:
        return (
            [f"  {style.paint('outside any line of Python that could be found', 'dim')}"] if not label else []
        )
    text = source_line(site)
    prefix = f"{label} " if label else ""
    lines = ["  " + style.paint(prefix + place(site, folder), "dim")]
    if text:
        room = style.width - 6
        shown = text if len(text) <= room else text[: room - 3] + "..."
        lines.append("    > " + style.paint(shown, "bold"))
    return lines


def _rows(finding: Finding, other: int, *, everything: bool) -> list[tuple[str, str]]:
    out = "first draw" if finding.kind == "rng" else "what came out"
    rows = [("what went in", _inputs(finding))] if everything else []
    rows.append((out, _outputs(finding)))
    if finding.difference is not None and finding.difference.values is not None:
        rows.append(("", _values(finding.difference, other)))
    if finding.other_op and finding.other_op != finding.op:
        rows.append((f"in run {other}", f"{finding.other_op} instead"))
    cause = finding.cause if finding.cause != "unknown" else "not known yet"
    rows.append(("cause", cause))
    rows.append(("why", why(finding)))
    rows += [("", f"- {line}") for line in finding.evidence if everything]
    if finding.remedy is not None:
        rows += _remedy_rows(finding.remedy)
    return [(label, text) for label, text in rows if text]


def _remedy_rows(remedy: Remedy) -> list[tuple[str, str]]:
    """What to change, and the user's line before and after."""
    pairs = f"{_count(remedy.pairs, 'pair')} of runs" if remedy.pairs else "runs"
    state = {True: f" (tried: {pairs} identical)", False: " (tried: still different)", None: ""}
    rows = [("remedy", remedy.text + state[remedy.confirmed])]
    rows += [("before", remedy.before)] if remedy.before else []
    return rows + ([("after" if remedy.before else "new line", remedy.after)] if remedy.after else [])


def _inputs(finding: Finding) -> str:
    what = ", ".join(finding.inputs)
    if finding.inputs_equal is None:
        return what
    if finding.kind == REPLAY:
        return f"{what}: the same bits each time" if what else "the same bits each time"
    verdict = "the same bits in both runs" if finding.inputs_equal else "not the same in both runs"
    return f"{what}: {verdict}" if what else verdict


def _outputs(finding: Finding) -> str:
    what = _named_outputs(finding)
    difference = finding.difference
    if difference is None:
        return what
    return f"{what}: {_amount(difference)}" if what else _amount(difference)


def _named_outputs(finding: Finding) -> str:
    """`fc1.weight f32[3], fc1.bias f32[1] and 2 more`."""
    names, outputs = finding.names, finding.outputs
    if len(names) == len(outputs):
        parts = [f"{name} {output}".strip() for name, output in zip(names, outputs, strict=True)]
    else:
        parts = list(outputs)
    more = f" and {len(parts) - _MOST_NAMES} more" if len(parts) > _MOST_NAMES else ""
    return ", ".join(parts[:_MOST_NAMES]) + more


def _amount(difference: Difference) -> str:
    text = f"{number(difference.elements)} of {_count(difference.total, 'element')} differ"
    if difference.max_abs is not None and math.isnan(difference.max_abs):
        text += ", some of them NaN in one run"
    elif difference.max_abs is not None:
        text += f", by up to {difference.max_abs:.4g}"
    if difference.max_ulp is not None:
        text += f" ({number(difference.max_ulp)} ULP)"
    return text


def _values(difference: Difference, other: int) -> str:
    first, second = difference.values or ("", "")
    index = difference.first_index
    where = f"first at {list(index)}: " if index else ""
    return f"{where}{first} in run 1, {second} in run {other}"


def _divided(findings: tuple[Finding, ...]) -> tuple[list[Finding], list[Finding]]:
    """The findings after the first: those that the pins have shown to be of its cause, and the others."""
    first, *others = findings
    same = [each for each in others if first.confirmed_by and each.cause == first.cause]
    return same, [each for each in others if each not in same]


def _others(title: str, findings: Sequence[Finding], style: Style, folder: str) -> list[str]:
    if not findings:
        return []
    lines = ["", style.paint(title, "bold")]
    for finding in findings[:_MOST_FINDINGS]:
        where = f", {place(finding.site, folder)}" if finding.site is not None else ""
        cause = f" ({finding.cause})" if finding.cause != "unknown" else ""
        lines += style.wrap(f"{_headline(finding)}{where}{cause}", indent=2, hanging=4)
    if len(findings) > _MOST_FINDINGS:
        lines.append(f"  ... and {len(findings) - _MOST_FINDINGS} more (--json lists all)")
    return lines


def _replayed(comparison: Comparison, style: Style, folder: str, *, verbose: bool) -> list[str]:
    """The operations that did not repeat, whatever the verdict, and how many were looked at."""
    if comparison.replayed is None:
        return []
    lines: list[str] = []
    findings = comparison.replayed.findings
    for finding in findings[:_MOST_FINDINGS]:
        lines += ["", *_first(finding, 0, style, folder, title="does not repeat", verbose=verbose)]
    if len(findings) > _MOST_FINDINGS:
        lines.append(f"  ... and {len(findings) - _MOST_FINDINGS} more (--json lists all)")
    summary = comparison.replayed.summary
    texts = [summary_text(summary), *(f"- {line}" for line in skipped_lines(summary))]
    lines.append("")
    for label, text in zip(["replay", *[""] * len(texts)], texts, strict=False):
        lines += _row(label, text, style)
    return lines


def _notes(comparison: Comparison, style: Style, folder: str, *, verbose: bool) -> list[str]:
    if not comparison.notes:
        return []
    lines, most = [""], None if verbose else _MOST_NOTES
    notes = list(comparison.notes) if verbose else _gathered(comparison.notes)
    for note in notes[:most]:
        text = printable(note.replace(folder + os.sep, ""))
        lines += style.wrap(f"note: {text}", hanging=6)
    if not verbose and len(notes) > _MOST_NOTES:
        lines.append(f"and {len(notes) - _MOST_NOTES} more notes (--verbose)")
    return lines


def _gathered(notes: Sequence[str]) -> list[str]:
    """The notes, with one for all values that could not be put in place, behind the others."""
    missing = [note for note in notes if note.startswith(NOT_PLACED)]
    if len(missing) < 2:
        return list(notes)
    text = f"{NOT_PLACED} at {len(missing)} operations (--verbose lists them)"
    return [*(note for note in notes if note not in missing), text]


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
            lines += _row(label, text, style)
    return lines if len(lines) > 1 else []


def _each_run(result: Verification, folder: str) -> list[str]:
    rows = [
        f"  {_shown(run.record, folder)}  {run.seconds:.1f} s, status {run.status}" for run in result.runs
    ]
    return ["", *rows]


def _run_counts(result: Verification) -> str:
    words = {
        "compare": "to compare",
        "localise": "to find the operation",
        "excuse": "without memory that nothing read",
        "replay": "to execute operations again",
        "capture": "to go on with equal values",
        "again": "to see it again",
        "intervene": "with something pinned",
        "fix": "to try a patch",
    }
    if not result.seconds:
        return ""
    counts = {purpose: sum(run.purpose == purpose for run in result.runs) for purpose in words}
    parts = [f"{count} {words[purpose]}" for purpose, count in counts.items() if count]
    purposes = f": {', '.join(parts)}" if len(parts) > 1 else ""
    return f"{len(result.runs)} in {result.seconds:.0f} s{purposes}"


def _next(result: Verification, folder: str) -> str:
    """The command that shows every operation of the step in question."""
    findings = result.comparison.findings
    records = [run.record for run in result.runs if run.purpose == "localise"]
    if result.comparison.verdict != "different" or not findings or not records:
        return ""
    step = f" --step {findings[0].step}" if findings[0].step is not None else ""
    return f"samebits show {_shown(records[-1], folder)} --events op{step}"


def _shown(path: str, folder: str) -> str:
    inside = os.path.relpath(path, folder)
    return printable(path if inside.startswith("..") else inside)


def _row(label: str, text: str, style: Style) -> list[str]:
    hanging = _LABEL + 2 if text.startswith("- ") else _LABEL
    wrapped = style.wrap(printable(text), indent=_LABEL, hanging=hanging)
    return [style.paint(f"  {label:{_LABEL - 2}}", "dim") + wrapped[0][_LABEL:], *wrapped[1:]]


def _count(value: int, noun: str) -> str:
    return f"{number(value)} {noun}" + ("" if value == 1 else "s")
