"""The section on how far two runs are apart step by step, where their records keep the values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from samebits._text.printable import printable
from samebits.comparison.growth import MOST_TENSORS, GrowthKind
from samebits.report.html.document import Block, Figure, Paragraph, Section, Table
from samebits.report.html.svg import NARROW, WIDE, Ink, drawn, power_of_ten
from samebits.report.plot import can_plot
from samebits.report.style import count, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.comparison.growth import Growth, GrowthPoint

_HEIGHT = 2.5
_MOST_ROWS = 60
_MOST_MARKS = 80  # of a curve; of more, only those that no line shows have one
_FEW_ROWS = 8
_CURVES = {
    GrowthKind.WEIGHTS: ("parameters and buffers", Ink.FIRST, "-", "o"),
    GrowthKind.GRADIENTS: ("gradients", Ink.SECOND, "--", "s"),
    GrowthKind.OPTIMIZER: ("optimizer state", Ink.TEXT, ":", "^"),
    GrowthKind.LOSSES: ("losses", Ink.MUTED, "-.", "D"),
}
"""Name, colour, dashes and marker of each curve."""


def growth_section(growth: Growth) -> Section:
    """Show how the distance of two runs grows."""
    curves = {kind: [point for point in growth.points if point.kind is kind] for kind in _CURVES}
    curves = {kind: points for kind, points in curves.items() if points}
    blocks: list[Block] = [Paragraph(text) for text in _described(curves)]
    if curves:
        blocks.append(_figure(growth, curves))
    blocks += [Paragraph(text, "unsure") for text in _missing(growth)]
    return Section("growth", "How far apart", (*blocks, *_table(growth)))


def _described(curves: dict[GrowthKind, list[GrowthPoint]]) -> list[str]:
    """Say of each curve where it begins, and how high it goes."""
    texts = []
    for kind, points in curves.items():
        first, most = points[0], max(points, key=lambda point: point.ulp)
        text = f"{_CURVES[kind][0].capitalize()}: {number(first.ulp)} ULP in step {first.step}"
        more = f", at most {number(most.ulp)} in step {most.step}" if most is not first else ""
        texts.append(f"{text}{more}.")
    return [" ".join(texts)] if texts else []


def _missing(growth: Growth) -> list[str]:
    """Say what has no distance."""
    texts = []
    if growth.unkept:
        pairs = count(growth.unkept, "pair")
        texts.append(f"{pairs} of tensors that differ could not be measured: a record does not keep both.")
    if growth.unmeasurable:
        pairs = count(growth.unmeasurable, "pair")
        have = "has" if growth.unmeasurable == 1 else "have"
        texts.append(f"{pairs} of tensors {have} no distance in ULP: integers, or what is not finite.")
    if growth.last is not None:
        texts.append(f"Measured up to step {growth.last}: no more than {number(MOST_TENSORS)} tensors are.")
    return texts


def _figure(growth: Growth, curves: dict[GrowthKind, list[GrowthPoint]]) -> Figure:
    caption = (
        "For each step the largest distance between two elements of a tensor, in units in the last place "
        "(ULP), on a logarithmic axis. Where a curve has a gap, nothing differs. An ULP is small near zero, "
        "so one element that is almost zero is enough for a large distance."
    )
    if growth.stride > 1:
        caption += f" Measured in one of {growth.stride} steps, and in the first that differs."

    def draw(drawing: Any, width: float) -> None:
        axes = drawing.subplots()
        for kind, points in curves.items():
            _draw_curve(axes, kind, points, growth.stride)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(power_of_ten)
        axes.minorticks_off()
        axes.set_ylim(0.7, 3 * max(point.ulp for point in growth.points))
        axes.set_xlim(left=-0.5)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("step")
        axes.set_title("largest distance in ULP", color=Ink.TEXT.value)
        drawing.legend(loc="outside lower center", ncols=4 if width == WIDE else 2)

    wide, narrow = ("", "")
    if can_plot():
        wide = drawn(draw, "growth-wide", WIDE, _HEIGHT)
        narrow = drawn(draw, "growth-narrow", NARROW, _HEIGHT + 0.4)
    alt = " ".join([*_described(curves), "The table below has the numbers of each module."])
    return Figure("figure-growth", "How the difference grows", alt, caption, wide, narrow)


def _draw_curve(axes: Any, kind: GrowthKind, points: Sequence[GrowthPoint], stride: int) -> None:
    """Draw a curve with a gap where a step has no difference: 0 has no place on a logarithmic axis."""
    x: list[float] = []
    y: list[float] = []
    marked: list[int] = []
    for at, point in enumerate(points):
        near = [abs(other.step - point.step) <= stride for other in points[max(0, at - 1) : at + 2]]
        if at and point.step - points[at - 1].step > stride:
            x.append(math.nan)
            y.append(math.nan)
        if len(points) <= _MOST_MARKS or sum(near) == 1:
            marked.append(len(x))
        x.append(point.step)
        y.append(max(1, point.ulp))
    name, ink, dashes, marker = _CURVES[kind]
    axes.plot(
        x, y, color=ink.value, linestyle=dashes, linewidth=1.3, marker=marker, markersize=3.5,
        markevery=marked, label=name,
    )  # fmt: skip


def _table(growth: Growth) -> list[Table]:
    rows = tuple(
        (
            printable(row.name) or "root module",
            str(row.first), number(row.first_ulp), number(row.most_ulp), str(row.most),
        )
        for row in growth.rows[:_MOST_ROWS]
    )  # fmt: skip
    if not rows:
        return []
    head = ("module", "first step", "ULP there", "largest ULP", "in step")
    return [
        Table(
            "Distance of each module", head, rows, numbers=frozenset({1, 2, 3, 4}),
            folded=len(rows) > _FEW_ROWS, left_out=len(growth.rows) - len(rows),
        )
    ]  # fmt: skip
