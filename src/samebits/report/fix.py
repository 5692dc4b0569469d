"""The patch that was looked for, and what came of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from samebits.report.style import Style, printable

if TYPE_CHECKING:
    from samebits.verification.results import Fix

_MOST_REFUSALS = 4
_COLOURS = {"+": "green", "-": "red", "@": "dim"}


def fix_lines(fix: Fix, style: Style, folder: str) -> list[str]:
    """The patch as a diff, whether it was confirmed, and what was left alone.

    Args:
        fix: what was found.
        style: colour and width.
        folder: paths are shown relative to it.
    """
    words = "applied, " + fix.words() if fix.applied else fix.words()
    lines = ["", *style.wrap(printable(f"fix: {words}".replace(folder + os.sep, "")), hanging=2)]
    lines[1] = style.paint("fix", "bold") + lines[1][len("fix") :]
    for line in fix.diff.decode(errors="replace").splitlines():
        colour = "bold" if line.startswith(("+++", "---")) else _COLOURS.get(line[:1], "")
        text = "  " + printable(line)
        lines.append(style.paint(text, colour) if colour else text)
    lines += [line for why in _refusals(fix) for line in style.wrap(printable(why), indent=2, hanging=4)]
    if fix.diff_file:
        shown = os.path.relpath(fix.diff_file, folder)
        where = fix.diff_file if shown.startswith("..") else shown
        lines.append(style.paint(f"  written to {printable(where)}", "dim"))
    return lines


def _refusals(fix: Fix) -> list[str]:
    more = len(fix.refusals) - _MOST_REFUSALS
    shown = [f"left alone: {why}" for why in fix.refusals[:_MOST_REFUSALS]]
    return shown + ([f"and {more} more (--json lists all)"] if more > 0 else [])
