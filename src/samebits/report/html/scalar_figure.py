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

    Curves = dict[Site | None, list[Scalar]]  # of each line, in the order of the steps

_HEIGHT = 2.2
_LONGEST_NAME = 30
_MOST_MARKS = 80  # of a curve; more would run into one another
_LINES = ((Ink.FIRST, "-", "o"), (Ink.SECOND, "--", "s"), (Ink.TEXT, ":", "^"), (Ink.MUTED, "-.", "D"))
"""Colour, dashes and marker of each curve; so many curves are drawn."""


def scalar_figure(scalars: Sequence[Scalar]) -> Figure | None:
    """Return the curves of the losses by step; None where no line has two that are finite."""
    curves = _curves(scalars)
    drawn_curves = dict(list(curves.items())[: len(_LINES)])
    if max(map(len, curves.values()), default=0) < 2:
        return None

    others = [each for each in scalars if each.kind == EventKind.LOSS and not math.isfinite(each.number)]

    def draw(drawing: Any, _width: float) -> None:
        _draw(drawing.subplots(), drawn_curves, sorted({each.step for each in others}))

    wide, narrow = ("", "")
    if can_plot():
        wide = drawn(draw, "loss-wide", WIDE, _HEIGHT)
        narrow = drawn(draw, "loss-narrow", NARROW, _HEIGHT)
    infinite = _infinite_words(others)
    described = [_described(*each) for each in drawn_curves.items()]
    alt = " ".join([*described, *infinite, "The table below has the numbers."])
    caption = " ".join([*_caption(curves), *infinite])
    return Figure("figure-loss", "Loss by step", alt, caption, wide, narrow)


def _caption(curves: Curves) -> list[str]:
    """Say how to read the drawing."""
    texts = []
    if all(len(losses) <= _MOST_MARKS for losses in curves.values()):
        texts.append("Only the steps whose loss is known have a mark.")
    if len(curves) > 1:
        texts.append("Each line of the script that made losses has a curve of its own.")
    if len(curves) > len(_LINES):
        texts.append(f"{len(curves) - len(_LINES)} more lines are not drawn.")
    return texts


def _infinite_words(losses: Sequence[Scalar]) -> list[str]:
    """Say how many losses have no place in a curve, and where they begin."""
    if not losses:
        return []
    several = f"{len(losses)} losses are" if len(losses) > 1 else "1 loss is"
    first = min(each.step for each in losses)
    return [f"{several} not finite, the first in step {first}: a cross at the upper edge."]


def _curves(scalars: Sequence[Scalar]) -> Curves:
    """Return the finite losses of each line, those of the lines with the most first."""
    curves: Curves = {}
    for each in scalars:
        if each.kind == EventKind.LOSS and math.isfinite(each.number):
            curves.setdefault(each.site, []).append(each)
    return dict(sorted(curves.items(), key=lambda item: -len(item[1])))


def _draw(axes: Any, curves: Curves, infinite: Sequence[int]) -> None:
    for (site, losses), (ink, dashes, marker) in zip(curves.items(), _LINES, strict=False):
        x, y = [each.step for each in losses], [each.number for each in losses]
        axes.plot(
            x, y, color=ink.value, linestyle=dashes, markersize=4, linewidth=1.2,
            marker=marker if len(losses) <= _MOST_MARKS else None,
            label=end_of(_name(site), _LONGEST_NAME),
        )  # fmt: skip
    if infinite:
        axes.plot(
            infinite, [1.0] * len(infinite), color=Ink.SECOND.value, marker="x", markersize=4, linewidth=0,
            transform=axes.get_xaxis_transform(), clip_on=False, label="not finite",
        )  # fmt: skip
    if wants_log([each.number for losses in curves.values() for each in losses]):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("step")
    axes.set_title("loss", color=Ink.TEXT.value)
    if len(curves) > 1 or infinite:
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
