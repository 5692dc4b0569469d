"""Curves of several seeds with median and band, and the final values beside them, as PNG and SVG."""

from __future__ import annotations

import importlib
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits._text import files
from samebits._text.printable import printable
from samebits.report.spread_text import wants_log

if TYPE_CHECKING:
    from pathlib import Path

    from samebits.commands.spread.summary import Measured, Spread


@dataclass(frozen=True)
class Palette:
    """The colours of a plot.

    Args:
        configurations: of the first and of the second.
        single: of the curve of one seed, where there is one configuration.
        pair: of the line that joins the two values of a seed.
        estimate: of mean and interval.
    """

    configurations: tuple[str, str]
    single: str
    pair: str
    estimate: str


# Blue and vermillion of Okabe and Ito's palette: they differ for all common kinds of colour vision, and by
# their lightness in print.
_PALETTE = Palette(("#0072B2", "#D55E00"), "#8A8A8A", "#BBBBBB", "black")
_MANY = 30  # curves
_LONG = 2000  # points of a curve that a plot can show
_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "axes.edgecolor": "#666666",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "text.parse_math": False,  # a dollar in a name begins no formula
    "svg.hashsalt": "samebits",  # the same file for the same values
    "figure.facecolor": "white",
}


def can_plot() -> bool:
    """Tell whether matplotlib can be imported."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        return False
    return True


def draw(spread: Spread, stem: Path) -> tuple[str, ...]:
    """Write the plot as PNG and SVG.

    Args:
        spread: what is shown.
        stem: path of the files, without a suffix.

    Returns:
        the paths that were written.

    Raises:
        OSError: they cannot be written.
    """
    matplotlib = importlib.import_module("matplotlib")
    figures = importlib.import_module("matplotlib.figure")
    with matplotlib.rc_context(
        {**matplotlib.rcParamsDefault, "backend": matplotlib.rcParams["backend"], **_STYLE}
    ):
        figure = figures.Figure(figsize=(8, 4.2), dpi=120, layout="constrained")
        curves, finals = figure.subplots(1, 2, width_ratios=[3.2, 1])
        draw_curves(curves, spread, _PALETTE)
        curves.set_title(_title(spread), loc="left", fontsize=10)
        draw_finals(finals, spread, _PALETTE)
        paths = tuple(f"{stem}{suffix}" for suffix in (".png", ".svg"))
        for path, metadata in zip(paths, ({}, {"Date": None}), strict=True):
            image = io.BytesIO()
            figure.savefig(image, format=path[-3:], metadata=metadata)
            files.write_whole(path, image.getvalue(), mode=files.SHARED)
    return paths


def draw_curves(axes: Any, spread: Spread, palette: Palette) -> None:
    """Draw the curve of each seed, their median and their band into the axes of a figure."""
    values = [value for measured in spread.measured for curve in measured.curves for value in curve.values]
    for number, measured in enumerate(spread.measured):
        alone = len(spread.measured) == 1
        _draw_configuration(axes, measured, "" if alone else f"{'AB'[number]}: ", (number, palette))
    if wants_log(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    counters = {curve.counter for measured in spread.measured for curve in measured.curves}
    axes.set_xlabel(counters.pop() if len(counters) == 1 and "" not in counters else "value in order")
    axes.set_ylabel(_short(spread.metric.name, 40))
    axes.legend(loc="best", fontsize=8)


def _draw_configuration(axes: Any, measured: Measured, name: str, inks: tuple[int, Palette]) -> None:
    number, palette = inks
    colour = palette.configurations[number]
    thin = colour if name else palette.single
    marker = "." if max(len(curve.x) for curve in measured.curves) < 3 else None
    alpha = 0.55 if len(measured.curves) < _MANY else 0.25
    for curve in measured.curves:
        x, y = _thinned(curve.x, curve.values)
        axes.plot(x, y, color=thin, linewidth=0.8, alpha=alpha, marker=marker, zorder=2)
    band = measured.band
    if band is None:
        return
    x, low = _thinned(band.x, band.low)
    high, median = _thinned(band.x, band.high)[1], _thinned(band.x, band.median)[1]
    axes.fill_between(
        x, low, high, color=colour, alpha=0.18, linewidth=0, label=f"{name}{band.label}", zorder=1
    )
    axes.plot(x, median, color=colour, linewidth=2.2, marker=marker, label=f"{name}median", zorder=3)


def draw_finals(axes: Any, spread: Spread, palette: Palette) -> None:
    """Draw the final value of each seed, and mean and interval, into the axes of a figure."""
    joined = spread.contrast is not None and spread.contrast.paired  # by a line for each seed
    if joined:
        first, second = (measured.finals for measured in spread.measured)
        for seed in first.keys() & second.keys():
            axes.plot([0, 1], [first[seed], second[seed]], color=palette.pair, linewidth=0.6, zorder=1)
    for number, measured in enumerate(spread.measured):
        values = [value for value in measured.finals.values() if math.isfinite(value)]
        scatter = 0.0 if joined else 0.11
        offsets = [number + scatter * ((index % 5) - 3) for index in range(len(values))]
        colour = palette.configurations[number]
        axes.scatter(offsets, values, s=22, color=colour, alpha=0.7, linewidth=0, zorder=2)
        estimate = measured.estimate
        if estimate is None:
            continue
        error = None
        if estimate.interval is not None:
            error = [[estimate.mean - estimate.interval[0]], [estimate.interval[1] - estimate.mean]]
        axes.errorbar(
            [number + (-0.3 if joined and number == 0 else 0.3)],
            [estimate.mean],
            yerr=error,
            fmt="D",
            color=palette.estimate,
            markersize=4,
            capsize=4,
        )
    count = len(spread.measured)
    axes.set_xlim(-0.6, count - 0.4)
    axes.set_xticks(range(count), list("AB"[:count]) if count > 1 else [""])
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    axes.ticklabel_format(axis="y", useOffset=False)
    with_interval = any(m.estimate and m.estimate.interval for m in spread.measured)
    axes.set_title("final values", loc="left", fontsize=10)
    axes.set_xlabel("diamond: mean,\n95 % interval" if with_interval else "diamond: mean", fontsize=8)


def _title(spread: Spread) -> str:
    commands = [" ".join(measured.configuration.command) for measured in spread.measured]
    counts = [len(measured.curves) for measured in spread.measured]
    if len(commands) == 1:
        return f"{_short(commands[0], 56)}: {counts[0]} seeds"
    pairs = zip("AB", commands, counts, strict=False)
    return "\n".join(f"{name}: {_short(command, 56)}: {count} seeds" for name, command, count in pairs)


def _short(text: str, most: int) -> str:
    text = printable(text)
    return text if len(text) <= most else f"{text[: most // 2 - 1]}...{text[-most // 2 + 2 :]}"


def _thinned(x: Any, y: Any) -> tuple[list[float], list[float]]:
    """Return at most as many points as a plot can show: every n-th one, and the last."""
    stride = -(-len(x) // _LONG)
    indices = sorted({*range(0, len(x), stride), len(x) - 1}) if len(x) else []
    finite = [y[index] if math.isfinite(y[index]) else math.nan for index in indices]
    return [x[index] for index in indices], finite
