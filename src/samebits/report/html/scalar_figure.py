"""The drawing of losses and values read whose numbers are known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from samebits.records.kinds import EventKind
from samebits.report.html.document import Figure
from samebits.report.html.svg import NARROW, WIDE, Ink, can_draw, drawn
from samebits.report.spread_text import figure as rounded
from samebits.report.spread_text import wants_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.comparison.course import Scalar

_HEIGHT = 2.2


def scalar_figure(scalars: Sequence[Scalar]) -> Figure | None:
    """Return the curve of the losses by step; None for fewer than two that are finite."""
    losses = [each for each in scalars if each.kind == EventKind.LOSS and math.isfinite(each.number)]
    if len(losses) < 2:
        return None

    def draw(drawing: Any, _width: float) -> None:
        axes = drawing.subplots()
        x, y = [each.step for each in losses], [each.number for each in losses]
        axes.plot(x, y, color=Ink.FIRST.value, marker="o", markersize=4, linewidth=1.2)
        if wants_log(y):
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("step")
        axes.set_title("loss", color=Ink.TEXT.value)

    wide, narrow = ("", "")
    if can_draw():
        wide = drawn(draw, "loss-wide", WIDE, _HEIGHT)
        narrow = drawn(draw, "loss-narrow", NARROW, _HEIGHT)
    first, last = losses[0], losses[-1]
    alt = (
        f"{len(losses)} losses: {rounded(first.number)} in step {first.step}, {rounded(last.number)} in step "
        f"{last.step}. The table below has the numbers."
    )
    caption = "Only the steps whose loss is known have a mark."
    return Figure("figure-loss", "Loss by step", alt, caption, wide, narrow)
