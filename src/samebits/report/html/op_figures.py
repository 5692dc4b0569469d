"""Drawings of operations in their order: which ones differ, and how far apart their outputs are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits._text.printable import printable
from samebits.comparison.op_timeline import OpState
from samebits.report.html.labels import told_apart
from samebits.report.html.svg import NARROW, WIDE, Ink, drawn, power_of_ten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.comparison.op_timeline import OpPoint

MOST_MARKS = 500
"""Marks of one row, and of the distances; more operations are drawn as groups."""
_MOST_ROWS = 24
# Of a group, the first counts.
_STATES = (OpState.BEGINS, OpState.ALONE, OpState.DIFFERS, OpState.UNPAIRED, OpState.SAME)
_MARKS: dict[OpState, tuple[str, Ink, float, str]] = {
    OpState.SAME: ("|", Ink.MUTED, 14, "the same bits"),
    OpState.DIFFERS: ("s", Ink.FIRST, 14, "differs, as what it reads does"),
    OpState.BEGINS: ("D", Ink.SECOND, 34, "a difference begins here"),
    OpState.ALONE: ("x", Ink.SECOND, 22, "the other run has none like it"),
    OpState.UNPAIRED: (".", Ink.MUTED, 8, "not compared"),
}


def op_drawings(points: Sequence[OpPoint], ident: str) -> tuple[str, str]:
    """Draw operations for wide pages and for narrow ones.

    Args:
        points: the operations.
        ident: unique on the page.
    """
    rows = module_rows([point.module for point in points])
    names = list(dict.fromkeys(rows[point.module] for point in points))
    measured = [point for point in points if point.difference and point.difference.max_ulp]

    def draw(figure: Any, width: float) -> None:
        ratios = [1.5, max(0.5, 0.19 * len(names))]
        panels = figure.subplots(2, 1, sharex=True, height_ratios=ratios) if measured else [figure.subplots()]
        if measured:
            _draw_distances(panels[0], measured, len(points))
        _draw_states(panels[-1], points, [names.index(rows[point.module]) for point in points])
        longest = 30 if width == WIDE else 16
        labels = told_apart([printable(name) or "outside modules" for name in names], longest)
        panels[-1].set_yticks(range(len(names)), labels, fontsize=8)
        panels[-1].set_ylim(len(names) - 0.5, -0.5)
        panels[-1].set_xlabel("operations in their order")
        _draw_legend(figure, panels, 2 if width == WIDE else 1)

    height = 1.3 + (1.6 if measured else 0) + 0.19 * len(names)
    return (
        drawn(draw, f"{ident}-wide", WIDE, height),
        drawn(draw, f"{ident}-narrow", NARROW, height + (0.8 if measured else 0.5)),
    )


def _draw_legend(figure: Any, panels: Sequence[Any], columns: int) -> None:
    """Explain all marks below the axes, where there are none of them."""
    found = [panel.get_legend_handles_labels() for panel in panels]
    handles, labels = ([each for pair in found for each in pair[at]] for at in (0, 1))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, handletextpad=0.2)


def module_rows(modules: Sequence[str]) -> dict[str, str]:
    """Return the row of each module: itself, or a common parent where there are too many."""
    distinct = dict.fromkeys(modules)
    deepest = max((name.count(".") + 1 for name in distinct), default=1)
    for depth in range(deepest, 0, -1):
        rows = {name: ".".join(name.split(".")[:depth]) for name in distinct}
        if len(set(rows.values())) <= _MOST_ROWS:
            return rows
    firsts = list(dict.fromkeys(rows.values()))[: _MOST_ROWS - 1]
    return {name: row if row in firsts else "…" for name, row in rows.items()}


def _draw_distances(axes: Any, points: Sequence[OpPoint], total: int) -> None:
    """Draw the largest distance of each operation on a logarithmic axis."""
    stride = -(-total // MOST_MARKS)
    largest: dict[tuple[int, bool], tuple[int, int]] = {}
    for point in points:
        assert point.difference is not None  # noqa: S101 - for the type checker
        ulp = point.difference.max_ulp or 0
        key = point.number // stride, point.is_backward
        if ulp > largest.get(key, (0, 0))[1]:
            largest[key] = point.number, ulp
    for backward, marker, name in (
        (False, "o", "distance: forward and the rest"),
        (True, "v", "distance: backward"),
    ):
        found = [at for (_, is_backward), at in largest.items() if is_backward == backward]
        if found:
            x, y = zip(*found, strict=True)
            face = "none" if backward else Ink.FIRST.value
            axes.scatter(
                x, y, s=16, marker=marker, facecolor=face, edgecolor=Ink.FIRST.value, linewidth=1, label=name
            )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(power_of_ten)
    axes.minorticks_off()
    highest = max(ulp for _, ulp in largest.values())
    axes.set_ylim(0.7, highest * 3)
    axes.set_title("how far apart: largest distance in ULP", color=Ink.TEXT.value)


def _draw_states(axes: Any, points: Sequence[OpPoint], rows: Sequence[int]) -> None:
    stride = -(-len(points) // MOST_MARKS)
    groups: dict[tuple[int, int], OpPoint] = {}
    for point, row in zip(points, rows, strict=True):
        key = row, point.number // stride
        if key not in groups or _rank(point) < _rank(groups[key]):
            groups[key] = point
    for state in reversed(_STATES):
        found = [(point.number, row) for (row, _), point in groups.items() if point.state == state]
        if found:
            x, y = zip(*found, strict=True)
            marker, ink, size, name = _MARKS[state]
            axes.scatter(x, y, s=size, marker=marker, color=ink.value, linewidth=0.9, label=name, zorder=2)
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", integer=True)
    axes.set_xlim(-1, max(point.number for point in points) + 1)


def _rank(point: OpPoint) -> int:
    return _STATES.index(point.state)
