"""The drawing of losses whose numbers are known: a curve for each line of the script that made some."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from samebits._text.printable import end_of, printable
from samebits.records.kinds import EventKind
from samebits.report.html.document import Figure
from samebits.report.html.svg import NARROW, WIDE, Ink, drawn
from samebits.report.plot import can_plot
from samebits.report.spread_text import figure as rounded
from samebits.report.spread_text import wants_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits._runtime.frames import Site
    from samebits.comparison.course import Scalar

    Curves = dict[Site | None, list[Scalar]]

_HEIGHT = 2.2
_LONGEST_NAME = 30
_LINES = ((Ink.FIRST, "-", "o"), (Ink.SECOND, "--", "s"), (Ink.TEXT, ":", "^"), (Ink.MUTED, "-.", "D"))
"""Colour, dashes and marker of each curve; so many curves are drawn."""


def scalar_figure(scalars: Sequence[Scalar]) -> Figure | None:
    """Return the curves of the losses by step; None where no line has two that are finite."""
    curves = _curves(scalars)
    drawn_curves = dict(list(curves.items())[: len(_LINES)])
    if max(map(len, curves.values()), default=0) < 2:
        return None

    def draw(drawing: Any, _width: float) -> None:
        _draw(drawing.subplots(), drawn_curves)

    wide, narrow = ("", "")
    if can_plot():
        wide = drawn(draw, "loss-wide", WIDE, _HEIGHT)
        narrow = drawn(draw, "loss-narrow", NARROW, _HEIGHT)
    alt = " ".join(
        [*(_described(*each) for each in drawn_curves.items()), "The table below has the numbers."]
    )
    caption = "Only the steps whose loss is known have a mark."
    if len(curves) > 1:
        caption += " Each line of the script that made losses has a curve of its own."
    if len(curves) > len(drawn_curves):
        caption += f" {len(curves) - len(drawn_curves)} more lines are not drawn."
    return Figure("figure-loss", "Loss by step", alt, caption, wide, narrow)


def _curves(scalars: Sequence[Scalar]) -> Curves:
    """Return the finite losses of each line, those of the lines with the most first."""
    curves: Curves = {}
    for each in scalars:
        if each.kind == EventKind.LOSS and math.isfinite(each.number):
            curves.setdefault(each.site, []).append(each)
    return dict(sorted(curves.items(), key=lambda item: -len(item[1])))


def _draw(axes: Any, curves: Curves) -> None:
    for (site, losses), (ink, dashes, marker) in zip(curves.items(), _LINES, strict=False):
        x, y = [each.step for each in losses], [each.number for each in losses]
        axes.plot(
            x, y, color=ink.value, linestyle=dashes, marker=marker, markersize=4, linewidth=1.2,
            label=end_of(_name(site), _LONGEST_NAME),
        )  # fmt: skip
    if wants_log([each.number for losses in curves.values() for each in losses]):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("step")
    axes.set_title("loss", color=Ink.TEXT.value)
    if len(curves) > 1:
        axes.legend(loc="best")


def _name(site: Site | None) -> str:
    """Name a line by its file without the folder: a drawing has no text that sharing could shorten."""
    return "no line known" if site is None else printable(f"{os.path.basename(site.file)}:{site.line}")


def _described(site: Site | None, losses: Sequence[Scalar]) -> str:
    first, last = losses[0], losses[-1]
    return (
        f"{_name(site)}, {len(losses)} losses: {rounded(first.number)} in step {first.step}, "
        f"{rounded(last.number)} in step {last.step}."
    )
