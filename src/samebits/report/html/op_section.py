"""The section on operations: in their order, which ones differ and how far apart their outputs are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.comparison.op_timeline import OpState
from samebits.report.html.document import Block, Figure, Paragraph, Section, Table
from samebits.report.html.op_figures import MOST_MARKS, op_drawings
from samebits.report.plot import can_plot
from samebits.report.remedy import shown_site
from samebits.report.style import count, number

if TYPE_CHECKING:
    from samebits.comparison.op_timeline import OpPoint, OpTimeline
    from samebits.recording.distance import Difference

_MOST_ROWS = 40
_STATES = {
    OpState.BEGINS: "begins here",
    OpState.DIFFERS: "inputs differ too",
    OpState.ALONE: "the other run has none like it",
}


def op_section(ops: OpTimeline, folder: str) -> Section:
    """Show the operations of the steps in which two runs part.

    Args:
        ops: the operations.
        folder: paths are shown relative to it.
    """
    wide, narrow = op_drawings(ops.points, "ops") if can_plot() else ("", "")
    figure = Figure("figure-ops", "Operations in their order", _alt(ops), _caption(ops), wide, narrow)
    blocks: list[Block] = [Paragraph(_summary(ops)), figure]
    blocks += [Paragraph(text, "unsure") for text in _missing(ops)]
    return Section("operations", "Operation by operation", (*blocks, _table(ops, folder)))


def _missing(ops: OpTimeline) -> list[str]:
    """Say which operations are not shown, or not compared."""
    texts = []
    if ops.left_out:
        shown = f"{number(len(ops.points))} operations around the first that differs are shown"
        texts.append(f"These steps have too many operations: {shown}, {number(ops.left_out)} are left out.")
    unpaired = sum(point.state == OpState.UNPAIRED for point in ops.points)
    if unpaired:
        many = f"{count(unpaired, 'operation')} could not be compared"
        texts.append(f"{many}: a step has too many events to pair those of the two runs.")
    return texts


def _steps(ops: OpTimeline) -> str:
    last = "" if ops.last_step == ops.first_step else f" to {ops.last_step}"
    return f"step{'s' if last else ''} {ops.first_step}{last}"


def _summary(ops: OpTimeline) -> str:
    differing = sum(point.state in (OpState.BEGINS, OpState.DIFFERS) for point in ops.points)
    of = count(len(ops.points), "operation")
    text = f"In {_steps(ops)}, {number(differing)} of {of} gave other bits.{_lone(ops)}"
    values = [
        point.difference.max_ulp for point in ops.points if point.difference and point.difference.max_ulp
    ]
    if not differing:
        return text
    if not ops.measured:
        return (
            f"{text} The records hold digests of them and no values, so how far they are apart is not known. "
            "`samebits verify --html` measures it."
        )
    if not values:
        return f"{text} The values of {ops.measured} were compared; none of them has a distance in ULP."
    rest = "" if ops.measured == differing else f" The values of {number(ops.measured)} were compared."
    return f"{text}{rest} The distances go from {number(min(values))} to {number(max(values))} ULP."


def _lone(ops: OpTimeline) -> str:
    """Say how many operations only one of the runs has."""
    alone = sum(point.state == OpState.ALONE for point in ops.points)
    first = f" Only run 1 has {number(alone)} of these." if alone else ""
    return first + (f" Only the other run has {number(ops.only_second)} more." if ops.only_second else "")


def _caption(ops: OpTimeline) -> str:
    text = "Each mark is an operation of run 1, compared with the same operation of the other run."
    if any(point.difference and point.difference.max_ulp for point in ops.points):
        text = (
            f"{text} Above: the largest distance between the elements of its output, in units in the last "
            "place (ULP), on a logarithmic axis; filled: forward, hollow: backward. Below: its module."
        )
    if len(ops.points) > MOST_MARKS:
        each = -(-len(ops.points) // MOST_MARKS)
        text += f" There are too many to draw, so a mark stands for {each} in a row, and shows the largest."
    return text


def _alt(ops: OpTimeline) -> str:
    begins = [point for point in ops.points if point.state == OpState.BEGINS]
    first = "" if not begins else f" The first that begins a difference is {_name(begins[0])}."
    return f"{_summary(ops)}{first} The table below lists them."


def _name(point: OpPoint) -> str:
    return f"{point.op} in module {point.module}" if point.module else point.op


def _table(ops: OpTimeline, folder: str) -> Table:
    differing = [point for point in ops.points if point.state in _STATES]
    rows = tuple(_row(point, folder) for point in differing[:_MOST_ROWS])
    head = ("operation", "number", "module", "line", "how", "elements", "largest ULP", "largest difference")
    return Table(
        "Operations that differ", head, rows, numbers=frozenset({1, 5, 6, 7}), folded=True,
        left_out=len(differing) - len(rows),
    )  # fmt: skip


def _elements(difference: Difference) -> str:
    kept = "" if difference.compared is None else f"{number(difference.compared)} kept of "
    return f"{number(difference.elements)} of {kept}{number(difference.total)}"


def _row(point: OpPoint, folder: str) -> tuple[str, ...]:
    difference = point.difference
    ulp = "" if difference is None or difference.max_ulp is None else number(difference.max_ulp)
    largest = "" if difference is None or difference.max_abs is None else f"{difference.max_abs:.4g}"
    elements = "" if difference is None else _elements(difference)
    module = f"{point.module}{' (backward)' if point.is_backward else ''}"
    line = "" if point.site is None else shown_site(point.site, folder)
    return (point.op, str(point.number), module, line, _STATES[point.state], elements, ulp, largest)
