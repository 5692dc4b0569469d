"""Remedies: what to change, with the user's own source lines.

A record names files, and it may come from a stranger. So only lines of Python source are shown, and only
of regular files below the working folder. If this command made the runs, a line may come from any file.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import tokenize
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from samebits._runtime.frames import Site
from samebits._text import files
from samebits._text.masking import masked_code
from samebits._text.printable import printable
from samebits.comparison.changed_code import code_name
from samebits.environment.files import sha256_of
from samebits.report.evidence import intervention_words
from samebits.report.reasons import sentence_or_none
from samebits.report.style import LABEL, Style, count, row, shown_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from samebits.comparison.results import LineChange, Remedy, RemedyTrial
    from samebits.verification.results import Fix

_SUFFIXES = (".py", ".pyw", ".pyx", ".pyi", ".ipynb")
_MOST_BYTES = 4 << 20  # of a source file
_MOST_LINES = 1_000_000
_LONGEST_LINE = 2_000
CHANGED_SINCE = "(the file has changed since this run)"


@dataclass(frozen=True)
class Sources:
    """The rule for which source files may be shown.

    Args:
        folder: the working folder; paths are shown relative to it.
        own: the runs were made by this command; otherwise the records may come from a stranger.
        replaced: by real path, the contents that the runs had of files that this command has changed since.
        cells: the lines of a notebook's cells, by what sites call them.
        code: of the first run and of the second, the SHA-256 of each file of code by its name. A line of a
            file that has changed since is not shown: it may be another one now.
    """

    folder: str
    own: bool = False
    replaced: Mapping[str, bytes] = field(default_factory=dict)
    cells: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    code: tuple[Mapping[str, str], ...] = ()


def source_line(site: Site, sources: Sources, *, of_second: bool = False) -> str:
    """Return the text of a line without its indentation; empty if the file is missing or may not be shown."""
    lines = source_lines(site, sources, 0, of_second=of_second)
    return lines[0][1].strip() if lines else ""


def has_changed(site: Site, sources: Sources, *, of_second: bool = False) -> bool:
    """Tell whether a file that may be shown is no longer the one that the run had."""
    try:
        path = "" if site.file in sources.cells else _allowed(site.file, sources)
        return bool(path) and _is_other(path, site, sources, of_second=of_second)
    except (OSError, ValueError):
        return False


def _is_other(path: str, site: Site, sources: Sources, *, of_second: bool) -> bool:
    code = sources.code[-1 if of_second else 0] if sources.code else {}
    expected = code.get(code_name(site.file, code))
    if expected is None:
        return False
    replaced = sources.replaced.get(path)
    if replaced is not None:
        return hashlib.sha256(replaced).hexdigest() != expected
    return os.path.isfile(path) and sha256_of(path) != expected


def source_lines(
    site: Site, sources: Sources, around: int, *, of_second: bool = False
) -> list[tuple[int, str]]:
    """Return a line with those around it, each with its number; none if the file may not be shown.

    Args:
        site: of the line.
        sources: which files may be shown.
        around: how many lines before it and after it.
        of_second: whether the line is of the second run.
    """
    try:
        cell = sources.cells.get(site.file)
        path = "" if cell is not None else _allowed(site.file, sources)
        if not (path or cell) or not 0 < site.line <= _MOST_LINES:
            return []
        if path and _is_other(path, site, sources, of_second=of_second):
            return []
        first, last = max(1, site.line - around), site.line + around
        texts = list(cell[first - 1 : last]) if cell else _lines(_contents(path, sources), first, last)
    except (OSError, ValueError, SyntaxError, LookupError):  # a name with a NUL, an unknown encoding
        return []
    if first + len(texts) <= site.line:  # the file is shorter by now
        return []
    texts = masked_code("\n".join(text.rstrip("\r\n") for text in texts)).split("\n")
    return [(first + at, printable(text.rstrip()[:_LONGEST_LINE])) for at, text in enumerate(texts)]


def _contents(path: str, sources: Sources) -> bytes:
    """Return the start of a file as the runs had it."""
    if path in sources.replaced:
        return sources.replaced[path][:_MOST_BYTES]
    with files.open_to_read(path, follow=False) as file:
        return bytes(file.read(_MOST_BYTES))


def _allowed(name: str, sources: Sources) -> str:
    """Return the real path of a file if it may be shown, else nothing."""
    if not os.path.isabs(name):
        return ""
    path, folder = os.path.realpath(name), os.path.realpath(sources.folder)
    if sources.own:
        return path
    inside = os.path.relpath(path, folder)
    parts = inside.split(os.sep)
    hidden = any(part.startswith(".") for part in parts)  # `..` too
    return path if inside.endswith(_SUFFIXES) and not hidden else ""


def _lines(data: bytes, first: int, last: int) -> list[str]:
    """Return the lines with these numbers, counted from 1 as Python counts."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    lines = io.TextIOWrapper(io.BytesIO(data), encoding=encoding, errors="replace")
    return list(itertools.islice(lines, first - 1, last))


def quotation(site: Site | None, sources: Sources, style: Style, *, of_second: bool = False) -> list[str]:
    """Return a line with the source line of a site, cut to the width; none if it may not be shown."""
    if site is not None and has_changed(site, sources, of_second=of_second):
        return ["    " + style.paint(CHANGED_SINCE, "dim")]
    text = "" if site is None else source_line(site, sources, of_second=of_second)
    width = style.width - 6
    shown = text if len(text) <= width else text[: width - 3] + "..."
    return ["    > " + style.paint(shown, "bold")] if text else []


def shown_site(site: Site, folder: str) -> str:
    """Return `train.py:12 in main`; a path inside `folder` is relative to it."""
    shown = shown_path(site.file, folder) if os.path.isabs(site.file) else site.file
    function = "" if site.function in ("", "<module>") else f" in {site.function}"
    return printable(f"{shown}:{site.line}{function}")


def remedy_lines(remedy: Remedy, style: Style, folder: str) -> list[str]:
    """Return the change in words and line by line, and whether it was run.

    Args:
        remedy: what is proposed.
        style: colour and width.
        folder: paths are shown relative to it.
    """
    lines = row("remedy", remedy.text.replace(folder + os.sep, ""), style)
    lines += _changes(remedy.changes, style, folder)
    return lines + (_tried(remedy.trial, style) if remedy.trial is not None else [])


def _changes(changes: Sequence[LineChange], style: Style, folder: str) -> list[str]:
    """Show one changed line before and after, and more than one as a diff."""
    if len(changes) == 1 and len(changes[0].before) == len(changes[0].after) == 1:
        (old,), (new,) = changes[0].before, changes[0].after
        return [_code("before", old.strip(), style), _code("after", new.strip(), style)]
    lines = []
    for change in changes:
        lines.append(_code("change", shown_site(Site(change.file, change.line, ""), folder), style))
        lines += [_code("", f"- {line}", style, "red") for line in change.before if line.strip()]
        lines += [_code("", f"+ {line}", style, "green") for line in change.after if line.strip()]
    return lines


def _code(label: str, text: str, style: Style, *colours: str) -> str:
    """Return a line that is never wrapped, because the user will copy it."""
    return style.paint(f"  {label:{LABEL - 2}}", "dim") + style.paint(printable(masked_code(text)), *colours)


def _tried(trial: RemedyTrial, style: Style) -> list[str]:
    return row(*trial_words(trial), style)


def trial_words(trial: RemedyTrial) -> tuple[str, str]:
    """Say whether a change was run (`tried`) or not (`not run`), and what runs showed."""
    pairs = f"{count(trial.pairs, 'pair')} of runs {'was' if trial.pairs == 1 else 'were'}"
    far = "" if trial.steps is None else f" in the first {trial.steps} steps"
    if trial.of == "pins":
        pinned = f"{intervention_words(trial.interventions)}, {pairs} identical{far}"
        return "not run", f"{pinned}; this change itself was not run"
    if trial.identical:
        return "tried", f"with this change {pairs} identical{far}"
    return "tried", "with this change the runs still differed"


_MOST_REFUSALS = 4
_COLOURS = {"+": "green", "-": "red", "@": "dim"}


def fix_lines(fix: Fix, style: Style, folder: str) -> list[str]:
    """Return the patch as a diff, whether it was confirmed, and what was not changed.

    Args:
        fix: the patch.
        style: colour and width.
        folder: paths are shown relative to it.
    """
    lines = ["", *style.titled("fix", printable(fix_outcome(fix).replace(folder + os.sep, "")))]
    for line in fix.diff.decode(errors="replace").splitlines():
        colour = "bold" if line.startswith(("+++", "---")) else _COLOURS.get(line[:1], "")
        text = "  " + printable(line)
        lines.append(style.paint(text, colour) if colour else text)
    lines += [line for why in _refusals(fix) for line in style.wrap(printable(why), indent=2, hanging=4)]
    if fix.diff_file:
        lines.append(style.paint(f"  written to {printable(shown_path(fix.diff_file, folder))}", "dim"))
    return lines


def _refusals(fix: Fix) -> list[str]:
    more = len(fix.refusals) - _MOST_REFUSALS
    shown = [f"not changed: {why}" for why in fix.refusals[:_MOST_REFUSALS]]
    return shown + ([f"and {more} more (--json lists all)"] if more > 0 else [])


def fix_outcome(fix: Fix) -> str:
    """Say whether a patch was confirmed, and whether it was applied."""
    return ("applied, " if fix.applied else "") + _confirmed(fix)


def _confirmed(fix: Fix) -> str:
    if fix.patch is None:
        return "no patch could be made"
    if fix.confirmed:
        return f"confirmed by {count(fix.pairs, 'pair')}"
    return f"not confirmed: {sentence_or_none(fix.still) or 'it was not tried'}"
