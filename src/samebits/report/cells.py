"""What a notebook shows of a cell that was run again, or under control."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._text.option_names import Interface
from samebits._text.printable import printable_lines
from samebits.commands.cell_facts import Left
from samebits.report.calls import report_on
from samebits.report.remedy import shown_site
from samebits.report.style import Style
from samebits.report.vocabulary import some_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from samebits._runtime.frames import Site
    from samebits.commands.cell_facts import NotRestored
    from samebits.determinism.activation import ActivationReport
    from samebits.switches.switch import Control
    from samebits.verification.results import Verification

_SITE = re.compile(r"Cell(\s+)In\[(\d+)\]:(\d+)")
_LEFT = {
    Left.ITERATOR: "how far {} has been read",
    Left.FILE: "the position in the file {}",
    Left.CACHE: "the cache of {}",
    Left.GRAPH: "the graph of {}, which a backward pass frees",
    Left.OPAQUE: "what {} holds, of which some could not be copied",
    Left.TOO_MANY: "the rest of {}, which holds too many objects",
}
_ALWAYS = (
    "one kernel has one hash seed, one layout of memory and one number of threads, so what depends on them "
    "is not seen here; `samebits verify SCRIPT` varies them"
)


def verdict_on_cell(
    result: Verification,
    not_restored: Sequence[NotRestored],
    cells: Mapping[str, tuple[str, ...]],
    *,
    state_only: bool,
    records: str,
) -> str:
    """Return the report on the runs of a cell.

    Args:
        result: the verdict.
        not_restored: what was not put back before the later runs.
        cells: the lines of all cells, by what IPython calls them.
        state_only: values that are only read out may differ.
        records: folder of the records, which are gone.
    """
    style = Style(interface=Interface.CELL, state_only=state_only)
    lines = [report_on(result, style, removed=Path(records), cells=cells)]
    identical = result.comparison.identical
    failed = result.comparison.verdict == "not_judged"
    told = [each for each in not_restored if each.kind != Left.GRAPH or failed]
    for kind, text in _LEFT.items():
        names = [f"`{each.variable}`" for each in told if each.kind == kind]
        if names:
            lines += style.wrap(
                f"note: not put back before run 2: {text.format(some_names(names))}", hanging=6
            )
    if identical:
        lines += style.wrap(f"note: {_ALWAYS}", hanging=6)
    return as_in_tracebacks("\n".join(lines))


def control_line(control: Control, report: ActivationReport | None) -> str:
    """Say in one line what a cell was controlled by.

    Args:
        control: what was asked for.
        report: of the control; None if it was portable mode alone.
    """
    parts = [] if control.seed is None else [f"all generators from seed {control.seed}"]
    if report is not None:
        done = [row for row in report.switches if row.state in ("set", "kept")]
        late = [row.name for row in report.switches if row.state == "too-late"]
        parts.append(f"{len(done)} switch{'' if len(done) == 1 else 'es'} set")
        if late:
            parts.append(f"too late in this kernel for {', '.join(late)}")
    if control.portable:
        parts.append("portable mode")
    return f"samebits run: {'; '.join(parts)}"


def warning_line(text: str, site: Site | None = None) -> str:
    """Return a warning of control for a notebook.

    Args:
        text: the warning.
        site: the line that it is about.
    """
    where = "" if site is None else f" ({shown_site(site, os.getcwd())})"
    return as_in_tracebacks(printable_lines(f"samebits: {text}{where}"))


def as_in_tracebacks(text: str) -> str:
    """Name lines of cells as IPython does."""
    return _SITE.sub(r"Cell\1In[\2], line \3", text)
