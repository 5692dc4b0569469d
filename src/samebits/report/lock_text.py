"""A check against a lock file, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits._text.printable import printable
from samebits.commands.lock.outcome import Blame
from samebits.report import lock_sentences as sentences
from samebits.report.remedy import shown_site
from samebits.report.sentences import why
from samebits.report.style import row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from samebits.commands.lock.outcome import Change, EntryResult
    from samebits.comparison.results import Origin
    from samebits.report.style import Style

_COLOURS = {"identical": "green", "different": "red", "not_judged": "yellow"}
_WORDS = {"identical": "identical", "different": "DIFFERENT", "not_judged": "not judged"}
_MOST_LINES = 8


def render(results: Sequence[EntryResult], style: Style, folder: str) -> str:
    """Return a table of all entries, and what is known of each that differs.

    Args:
        results: of the entries.
        style: colour and width.
        folder: paths are shown relative to it.
    """
    width = max((len(each.entry.name) for each in results), default=0)
    lines = [_line(each, width, style) for each in results]
    for each in results:
        if each.verdict != "identical":
            lines += ["", *_details(each, style, folder)]
    return "".join(f"{line}\n" for line in lines)


def _line(result: EntryResult, width: int, style: Style) -> str:
    word = style.paint(f"{_WORDS[result.verdict]:10}", _COLOURS[result.verdict], "bold")
    text = f"{result.entry.steps} steps" if result.verdict == "identical" else sentences.where_text(result)
    return f"{result.entry.name:{width}}  {word}  {text}".rstrip()


def _details(result: EntryResult, style: Style, folder: str) -> Iterable[str]:
    name = result.entry.name
    if result.verdict == "not_judged":
        yield from style.titled(name, printable(result.error[0]), "yellow")
        return
    if result.blame is None:
        yield from style.titled(name, "the bits are not those of the lock", "red")
    else:
        yield from style.titled(
            f"{name}: {sentences.TITLES[result.blame]}", sentences.blame_text(result), "red"
        )
    yield from _rows(result, style)
    yield from _operation(result, style, folder)
    yield from _optional("next", sentences.next_text(result, folder), style)


def _rows(result: EntryResult, style: Style) -> Iterable[str]:
    yield from _optional("values", sentences.values_text(result), style)
    if result.change is not None:
        yield from _change(result.change, style)
    yield from _optional("settings", sentences.settings_text(result), style)
    for number, fact in enumerate(sentences.facts(result)):
        yield from row("lock and here" if not number else "", f"- {fact}", style)
    for number, text in enumerate(sentences.unknown(result)):
        yield from row("not known" if not number else "", f"- {text}", style)
    yield from _optional("error", result.error[0], style)


def _optional(label: str, text: str, style: Style) -> list[str]:
    return row(label, text, style) if text else []


def _change(change: Change, style: Style) -> Iterable[str]:
    yield from row("change", sentences.change_title(change), style)
    for hunk in change.hunks:
        yield from row("", f"{hunk.file}:{hunk.line}", style)
        for sign, lines, colour in (("-", hunk.before, "red"), ("+", hunk.after, "green")):
            for line in lines[:_MOST_LINES]:
                yield "    " + style.paint(f"{sign} {printable(line.rstrip())}", colour)
            if len(lines) > _MOST_LINES:
                yield f"    {sign} ... {len(lines) - _MOST_LINES} more lines"
    yield from row("", sentences.change_text(change), style)


def _place(result: EntryResult, origin: Origin, folder: str) -> str:
    """Return the line here, and with it that of the code of the lock where it is another one."""
    sites = [origin.site_of_second, origin.other_site if origin.of_second else origin.site]
    if result.blame is Blame.NONDETERMINISM or origin.other_site is None:
        sites = [origin.site]
    here, *locked = [shown_site(site, folder) for site in sites if site is not None] or [""]
    return "; with the code of the lock ".join([here, *locked])


def _operation(result: EntryResult, style: Style, folder: str) -> Iterable[str]:
    finding = result.finding
    if finding is None:
        return
    yield from row(sentences.place_label(result), sentences.operation_text(finding), style)
    yield from _optional("", _place(result, finding.origin, folder), style)
    if result.blame is Blame.NONDETERMINISM:
        yield from row("cause", f"{finding.cause}: {why(finding)}", style)
        if finding.remedy is not None:
            yield from row("remedy", finding.remedy.text, style)
