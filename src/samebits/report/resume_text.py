"""The report of a resume check: a line for each kill, then what was not restored."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from samebits._text.printable import printable
from samebits.commands.resume_facts import DifferenceKind, FactCode
from samebits.records.notes import Note
from samebits.report.notes import sentence as note_sentence
from samebits.report.notes import sentences
from samebits.report.reasons import sentence_or_none
from samebits.report.remedy import Sources, quotation, shown_site
from samebits.report.resume_reasons import evidence_lines
from samebits.report.resume_sentences import sentence
from samebits.report.style import Style, count, number, row, shown_path
from samebits.report.verdict_text import COLOURS, headline
from samebits.report.vocabulary import KIND_WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits.commands.resume_check.runs import Kill, ResumeCheck
    from samebits.commands.resume_facts import Fact, Omission

_MOST_NOTES = 4
_KIND_WORDS: Mapping[str, str] = {
    **KIND_WORDS,
    DifferenceKind.STEPS: "the number of steps",
    DifferenceKind.START: "before the first step",
}


def render(result: ResumeCheck, style: Style, folder: str, *, verbose: bool = False) -> str:
    """Return the whole report.

    Args:
        result: of the check.
        style: width and colour.
        folder: the working folder; paths below it are shown without it.
        verbose: each kill in full, and every run.
    """
    lines = headline(result.verdict, _reason(result), style)
    if result.kills:
        lines += ["", *_table(result, style)]
    shown: list[Kill] = []
    for kill in result.kills:
        if kill.difference is None:
            continue
        like = next((other for other in shown if _alike(other, kill)), None)
        if like is None or verbose:
            shown.append(kill)
            lines += ["", *_different(kill, style, folder)]
    lines += _notes(result, style, verbose=verbose)
    lines += ["", *_runs(result, style, folder)]
    if verbose:
        lines += [
            f"  {_shown(run.record, folder)}  {run.seconds:.1f} s, status {run.status}" for run in result.runs
        ]
    return "\n".join(lines)


def _reason(result: ResumeCheck) -> str:
    reason = sentence_or_none(result.reason) or ""
    if result.verdict == "identical":
        total = sum(kill.compared for kill in result.kills)
        return f"{reason}, {number(total)} steps compared"
    return reason


def _table(result: ResumeCheck, style: Style) -> list[str]:
    head = f"  {'killed after':>12}  {'goes on at':>10}  {'identical':>9}  result"
    lines = [style.paint(head, "dim")]
    told = [result.reason]  # a reason in the headline or in a row above is not repeated
    for kill in result.kills:
        start = "-" if kill.resumed_at is None else f"step {kill.resumed_at}"
        same = "-" if kill.resumed_at is None else count(kill.compared, "step")
        left = f"  {count(kill.after, 'step'):>12}  {start:>10}  {same:>9}  "
        word, more = kill.verdict.replace("_", " "), "" if kill.reason in told else _result(kill)
        told += [kill.reason] if kill.verdict == "not_judged" else []
        wrapped = style.wrap(word + more, indent=len(left))
        first = left + style.paint(word, COLOURS[kill.verdict]) + wrapped[0][len(left) + len(word) :]
        lines += [first, *wrapped[1:]]
    return lines


def _result(kill: Kill) -> str:
    if kill.verdict == "not_judged":
        return f": {printable(sentence_or_none(kill.reason) or '')}"
    if kill.is_fresh:
        return ", but it started from the beginning: nothing was resumed"
    if kill.difference is not None and kill.difference.step is not None:
        return f" from step {kill.difference.step} on"
    return ""


def _alike(a: Kill, b: Kill) -> bool:
    """Tell whether two kills show the same omissions."""
    return [o.part for o in a.omissions] == [o.part for o in b.omissions] and a.difference is not None


def _different(kill: Kill, style: Style, folder: str) -> list[str]:
    first = kill.difference
    if first is None:
        return []
    where = f"step {first.step}, " if first.step is not None else ""
    title = f"killed after {count(kill.after, 'step')}"
    lines = style.titled(title, f"first difference at {where}{_KIND_WORDS[first.kind]}")
    if first.site is not None:
        lines.append("  " + style.paint(shown_site(first.site, folder), "dim"))
        lines += quotation(first.site, Sources(folder, own=True), style)
    lines.append("")
    if first.fact.code != FactCode.LOSS:  # the title says it
        lines += row("what differs", sentence(first.fact), style)
    if not kill.omissions:
        lines += row(
            "not restored",
            "nothing was found: parameters, buffers, optimizer, hyperparameters, schedules, generators and "
            "batches were all restored",
            style,
        )
    for index, omission in enumerate(kill.omissions):
        label = "" if index else "not restored"
        lines += _omission(label, omission, evidence_lines(kill, omission), style)
    for note in sentences(kill.notes):
        lines += row("note", note, style)
    if kill.is_fresh:
        files = ", ".join(kill.written[:_MOST_NOTES]) or "none"
        lines += row(
            "not resumed",
            f"the run started from the beginning; the killed run left these files: {files}",
            style,
        )
    return lines


def _omission(label: str, omission: Omission, evidence: tuple[str, ...], style: Style) -> list[str]:
    lines = row(label, f"- {omission.part}: {sentence(omission.fact)}", style)
    for line in evidence:
        lines += row("", f"  {line}", style)
    return lines


def _notes(result: ResumeCheck, style: Style, *, verbose: bool) -> list[str]:
    notes = [*sentences(result.notes), *_notes_on_kills(result.kills)]
    lines = [""] if notes else []
    for note in notes if verbose else notes[:_MOST_NOTES]:
        lines += style.wrap(f"note: {printable(note)}", hanging=6)
    if not verbose and len(notes) > _MOST_NOTES:
        lines.append(f"and {len(notes) - _MOST_NOTES} more notes{style.interface.only(' (--verbose)')}")
    return lines


def _notes_on_kills(kills: tuple[Kill, ...]) -> list[str]:
    """Return the notes on kills without a difference, each once for all kills that it holds for."""
    after: dict[Note | Fact, list[int]] = {}
    for kill in kills:
        if kill.difference is None:
            remarks: list[Note | Fact] = [*kill.notes, *(omission.fact for omission in kill.omissions)]
            for remark in remarks:
                after.setdefault(remark, []).append(kill.after)
    return [f"killed after {_numbers(steps)} steps: {_harmless(remark)}" for remark, steps in after.items()]


def _harmless(remark: Note | Fact) -> str:
    if isinstance(remark, Note):
        return note_sentence(remark)
    return f"not restored, but it made no difference: {sentence(remark)}"


def _numbers(values: list[int]) -> str:
    *first, last = map(str, values)
    return f"{', '.join(first)} and {last}" if first else last


def _runs(result: ResumeCheck, style: Style, folder: str) -> list[str]:
    points = style.interface.kill_at(*(kill.after for kill in result.kills)) if result.kills else ""
    rows = [("whole run", f"{number(result.steps)} steps")]
    if result.verdict == "identical":
        rows.append(("final digest", result.final_digest[0]))
    rows.append(
        (
            "runs",
            f"{len(result.runs)} in {result.seconds:.0f} s" + (f" ({points})" if points else ""),
        )
    )
    if result.runs:
        rows.append(("records", _shown(os.path.dirname(result.runs[0].record), folder)))
    return [line for label, text in rows for line in row(label, text, style)]


def _shown(path: str, folder: str) -> str:
    return printable(shown_path(path, folder))
