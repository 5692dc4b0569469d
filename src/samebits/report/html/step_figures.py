"""Drawings of counts by module and step: a curve of their sum, and one row for each module."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, Any

from samebits._text.printable import printable
from samebits.comparison.step_chart import RowKind
from samebits.report.html.labels import told_apart
from samebits.report.html.svg import NARROW, WIDE, Ink, drawn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.comparison.step_chart import StepChart, StepRow

LEVELS = (
    (0.25, Ink.LEVEL_1, "up to a quarter"),
    (0.5, Ink.LEVEL_2, "up to half"),
    (0.999, Ink.LEVEL_3, "more"),
    (1.0, Ink.LEVEL_4, "all"),
)
"""Shares up to which a colour stands, the colour, and its name. They differ in lightness alone."""
_KIND_LABELS = {
    RowKind.GENERATORS: "generators",
    RowKind.BATCHES: "batches",
    RowKind.LOSSES: "losses",
    RowKind.VALUES: "values read or saved",
}


def row_label(row: StepRow) -> str:
    """Name a row: its kind, or the path of its module."""
    if row.kind != RowKind.MODULE:
        return _KIND_LABELS[row.kind]
    if row.joined > 1:
        return printable(f"{row.name}: {row.joined} modules" if row.name else f"{row.joined} other modules")
    return printable(row.name) or "root module"


def row_name(row: StepRow) -> str:
    """Name a row in a sentence: `module 0`, where its label would be `0`."""
    alone = row.kind == RowKind.MODULE and row.joined == 1 and row.name
    return f"module {row_label(row)}" if alone else row_label(row)


def step_drawings(chart: StepChart, ident: str, counted: str, *, marks_first: bool) -> tuple[str, str]:
    """Draw a chart for wide pages and for narrow ones.

    Args:
        chart: what is drawn.
        ident: unique on the page.
        counted: what the sum counts, such as `tensors that differ`.
        marks_first: draw a line at the first step with a count.
    """
    height = 1.9 + 0.19 * len(chart.rows)

    def draw(figure: Any, width: float) -> None:
        sums, rows = figure.subplots(2, 1, sharex=True, height_ratios=[1.0, max(0.5, 0.19 * len(chart.rows))])
        _draw_sums(sums, chart, counted)
        _draw_rows(rows, chart, 30 if width == WIDE else 16)
        if marks_first:
            _draw_first(figure.axes, chart)
        rows.set_xlabel("step")
        _draw_legend(figure, columns=4 if width == WIDE else 2)

    return (
        drawn(draw, f"{ident}-wide", WIDE, height),
        drawn(draw, f"{ident}-narrow", NARROW, height + 0.25),
    )


def _edges(chart: StepChart) -> list[float]:
    edges = [column * chart.width - 0.5 for column in range(len(chart.totals))]
    return [*edges, chart.steps - 0.5]


def _draw_sums(axes: Any, chart: StepChart, counted: str) -> None:
    totals = [math.nan if total is None else total for total in chart.totals]  # nan leaves a gap
    axes.stairs(totals, _edges(chart), fill=True, color=Ink.FIRST.value, alpha=0.25)
    axes.stairs(totals, _edges(chart), color=Ink.FIRST.value, linewidth=1.4, baseline=None)
    axes.set_ylim(0, max(1, chart.held) * 1.08)
    axes.set_xlim(-0.5, chart.steps - 0.5)
    axes.locator_params(axis="y", nbins=4, integer=True)
    axes.locator_params(axis="x", integer=True)
    axes.set_title(f"{counted}, of {chart.held}", color=Ink.TEXT.value)


def _draw_rows(axes: Any, chart: StepChart, longest: int) -> None:
    rectangles: dict[Ink, list[tuple[float, float, float]]] = {}
    for number, row in enumerate(chart.rows):
        for ink, left, right in _runs(row, chart):
            rectangles.setdefault(ink, []).append((number, left, right))
    for ink, found in rectangles.items():
        _draw_rectangles(axes, found, ink)
    axes.set_ylim(len(chart.rows) - 0.5, -0.5)
    labels = told_apart([row_label(row) for row in chart.rows], longest)
    axes.set_yticks(range(len(chart.rows)), labels, fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_title("share in each module", color=Ink.TEXT.value)


def _runs(row: StepRow, chart: StepChart) -> Iterator[tuple[Ink, float, float]]:
    """Yield the colour, the left and the right end of columns side by side that have the same colour."""
    edges, column = _edges(chart), 0
    for ink, group in groupby(row.shares, _ink):
        length = len(list(group))
        if ink is not None:
            yield ink, edges[column], edges[column + length]
        column += length


def _ink(share: float) -> Ink | None:
    """Return the colour of a share; none for 0."""
    return next((ink for limit, ink, _ in LEVELS if share <= limit), Ink.LEVEL_4) if share > 0 else None


def _draw_rectangles(axes: Any, rectangles: list[tuple[float, float, float]], ink: Ink) -> None:
    """Draw rectangles (row, left, right) of one colour as one path: a page may have thousands."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    vertices, codes = [], []
    for row, left, right in rectangles:
        top, bottom = row - 0.42, row + 0.42
        vertices += [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
        codes += [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    axes.add_patch(PathPatch(Path(vertices, codes), facecolor=ink.value, linewidth=0))


def _draw_first(axes: list[Any], chart: StepChart) -> None:
    if chart.first is not None:
        for each in axes:
            each.axvline(chart.first - 0.5, color=Ink.SECOND.value, linewidth=1.2, linestyle=(0, (4, 2)))


def _draw_legend(figure: Any, columns: int) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(facecolor=ink.value, label=name) for _, ink, name in LEVELS]
    figure.legend(handles=patches, loc="outside lower center", ncols=columns, handlelength=1.2)
