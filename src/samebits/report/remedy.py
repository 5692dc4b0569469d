"""What to change, on the user's own lines, and what runs have shown of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from samebits.diagnosis.attribution import words_of
from samebits.hooks.frames import Site
from samebits.report.source import place
from samebits.report.style import LABEL, Style, number, printable, row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.comparison.results import LineChange, Remedy, RemedyTrial


def remedy_lines(remedy: Remedy, style: Style, folder: str) -> list[str]:
    """The change in words and line by line, and whether it was run.

    Args:
        remedy: what is proposed.
        style: colour and width.
        folder: paths are shown relative to it.
    """
    lines = row("remedy", remedy.text.replace(folder + os.sep, ""), style)
    lines += _changes(remedy.changes, style, folder)
    return lines + (_tried(remedy.trial, style) if remedy.trial is not None else [])


def _changes(changes: Sequence[LineChange], style: Style, folder: str) -> list[str]:
    """One line before and after; what is more than that as in a diff."""
    if len(changes) == 1 and len(changes[0].before) == len(changes[0].after) == 1:
        (old,), (new,) = changes[0].before, changes[0].after
        return [_code("before", old.strip(), style), _code("after", new.strip(), style)]
    lines = []
    for change in changes:
        lines.append(_code("change", place(Site(change.file, change.line, ""), folder), style))
        lines += [_code("", f"- {line}", style, "red") for line in change.before if line.strip()]
        lines += [_code("", f"+ {line}", style, "green") for line in change.after if line.strip()]
    return lines


def _code(label: str, text: str, style: Style, *colours: str) -> str:
    """A line that is printed whole, for it is to be copied."""
    return style.paint(f"  {label:{LABEL - 2}}", "dim") + style.paint(printable(text), *colours)


def _tried(trial: RemedyTrial, style: Style) -> list[str]:
    pairs = "1 pair of runs was" if trial.pairs == 1 else f"{number(trial.pairs)} pairs of runs were"
    far = "" if trial.steps is None else f" in the first {trial.steps} steps"
    if trial.of == "pins":
        pinned = f"{words_of(trial.pins)}, {pairs} identical{far}"
        return row("not run", f"{pinned}; this change itself was not run", style)
    if trial.identical:
        return row("tried", f"with this change {pairs} identical{far}", style)
    return row("tried", "with this change the runs still differed", style)
