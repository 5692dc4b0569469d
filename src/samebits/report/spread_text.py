"""The report of a spread as text, with a curve in one line for each seed."""

from __future__ import annotations

import itertools
import math
import shlex
from typing import TYPE_CHECKING

from samebits._text.printable import printable
from samebits.report.spread_sentences import NAMES, contrast_sentence, failure_sentence, remark_sentences
from samebits.report.style import row, shown_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.commands.spread.summary import Configuration, Contrast, Measured, Metric, Spread
    from samebits.report.style import Style

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-~=+*#"
_NOT_FINITE = "?"


def sparkline(values: Sequence[float], width: int, ramp: str = BLOCKS, *, log: bool = False) -> str:
    """Return the curve of some values, averaged down to `width` characters if it is longer.

    Args:
        values: NaN and infinities show as `?`.
        width: most characters.
        ramp: characters from low to high.
        log: logarithmic heights; all finite values must be positive.
    """
    columns = _averaged([math.log(v) if log and math.isfinite(v) else v for v in values], width)
    finite = [value for value in columns if math.isfinite(value)]
    if not finite:
        return _NOT_FINITE * len(columns)
    low, high = min(finite), max(finite)
    scale = (len(ramp) - 1) / (high - low) if high > low else 0.0
    return "".join(
        ramp[round((value - low) * scale)] if math.isfinite(value) else _NOT_FINITE for value in columns
    )


def strip(value: float, low: float, high: float, width: int, marks: str = "·●") -> str:
    """Return a line with a mark where a value lies between two others.

    Args:
        value: NaN and infinities get no mark.
        low: at the left end.
        high: at the right end.
        width: characters.
        marks: the line and the mark.
    """
    line = [marks[0]] * width
    if math.isfinite(value):
        position = round((value - low) / (high - low) * (width - 1)) if high > low else width // 2
        line[max(0, min(width - 1, position))] = marks[1]
    return "".join(line)


def wants_log(values: Sequence[float]) -> bool:
    """Tell whether positive values span too much for a linear scale."""
    finite = [value for value in values if math.isfinite(value)]
    return bool(finite) and min(finite) > 0 and max(finite) > 50 * min(finite)


def _averaged(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    edges = [round(index * len(values) / width) for index in range(width + 1)]
    return [_mean(values[a:b]) for a, b in itertools.pairwise(edges)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


_LABEL = 14
_MOST_ROWS = 40
_SOURCES = {
    "printed": "as printed",
    "logged": "as given to a logger",
    "backward": "the loss at backward",
    "read": "read out of a tensor",
}


def render(spread: Spread, style: Style, *, blocks: bool = True) -> str:
    """Return the whole report.

    Args:
        spread: the results.
        style: colour and width.
        blocks: whether the output can show block characters; else plain ASCII is drawn.
    """
    lines: list[str] = []
    for number, measured in enumerate(spread.measured):
        name = NAMES[number] if len(spread.measured) > 1 else ""
        lines += [*_configuration(spread, measured, name, style, blocks=blocks), ""]
    if spread.contrast is not None:
        lines += [*_contrast(spread.contrast, spread.metric.name, style), ""]
    for note in remark_sentences(spread):
        lines += style.wrap(f"note: {printable(note)}", hanging=6)
    lines += _row("plot", ", ".join(map(_shown, spread.plots)), style) if spread.plots else []
    folders = ", ".join(_shown(measured.configuration.folder) for measured in spread.measured)
    lines += _row("saved in", folders, style)
    return "\n".join(lines)


def render_metrics(metrics: Sequence[Metric], chosen: Metric, style: Style) -> str:
    """Return the list of metrics that `--metric` can take."""
    width = max(6, *(len(metric.name) for metric in metrics))
    lines = [style.paint(f"  {'metric':{width}}  {'values':>9}  from", "dim")]
    for metric in metrics:
        low, high = metric.values
        count = str(low) if low == high else f"{low}-{high}"
        mark = "*" if metric == chosen else " "
        same = "" if metric.varies else ", the same in all runs"
        name = printable(metric.name)
        lines.append(f"{mark} {name:{width}}  {count:>9}  {_SOURCES[metric.source]}{same}")
    return "\n".join([*lines, "", "* is the metric of the report; --metric NAME chooses another"])


def _configuration(spread: Spread, measured: Measured, name: str, style: Style, *, blocks: bool) -> list[str]:
    configuration = measured.configuration
    metric = spread.metric
    title = f"{name}: " if name else ""
    head = f"{title}{printable(metric.name)} of {printable(shlex.join(configuration.command))}"
    lines = style.wrap(head, hanging=2)
    lines[0] = style.paint(lines[0], "bold")
    lines += _rows(run_rows(spread, configuration), style)
    table = _table(measured, style, blocks=blocks)
    lines += ["", *table, "", *_rows(statistics_rows(measured), style)]
    for failure in configuration.failures:
        why = f"seed {failure.seed}, status {failure.status}: {failure_sentence(failure)}"
        lines += _row("failed", f"{why} ({_shown(failure.log)})", style)
    if configuration.not_run:
        lines += _row("not run", ", ".join(map(str, configuration.not_run)), style)
    return lines


def run_rows(spread: Spread, configuration: Configuration) -> list[tuple[str, str]]:
    """Say how many seeds were run and how, and what their final value is."""
    reused = len(configuration.reused)
    ran = len(configuration.runs) - reused
    asked = len(configuration.runs) + len(configuration.failures) + len(configuration.not_run)
    some = f" of {asked}" if asked > len(configuration.runs) else ""
    parts = [f"{len(configuration.runs)}{some} seeds"]
    parts += [f"{reused} of them finished before"] if reused else []
    parts += [f"{ran} run in {configuration.seconds:.0f} s"] if ran else []
    threads = "1 thread" if configuration.threads == 1 else f"{configuration.threads} threads"
    low, high = spread.metric.values
    count = str(low) if low == high else f"{low} to {high}"
    what = "the last" if spread.last == 1 else f"mean of the last {spread.last}"
    which = "the only value" if high == 1 else f"{what} of {count} values"
    value = f"{which}, {_SOURCES[spread.metric.source]}"
    return [("runs", f"{', '.join(parts)}, {threads} each"), ("final value", value)]


def _table(measured: Measured, style: Style, *, blocks: bool) -> list[str]:
    ramp = BLOCKS if blocks else PLAIN
    marks = "·●" if blocks else ".o"
    free = style.width - 28
    right = max(9, min(25, free // 2 - 1))
    longest = max(len(curve.values) for curve in measured.curves)
    left = max(11, min(40, free - right - 2, longest))
    values = [value for curve in measured.curves for value in curve.values]
    log = wants_log(values)
    low, high = (measured.estimate.least, measured.estimate.most) if measured.estimate else (0.0, 0.0)
    scale = " (log)" if log else ""
    head = f"  {'seed':>6}  {'final':>12}  {'curve' + scale:{left}}  {'least to most':{right}}"
    lines = [style.paint(head.rstrip(), "dim")]
    rows = list(zip(measured.finals.items(), measured.curves, strict=True))
    for (seed, value), curve in rows[:_MOST_ROWS]:
        spark = sparkline(curve.values, left, ramp, log=log)
        position = strip(value, low, high, right, marks)
        lines.append(f"  {seed:>6}  {figure(value):>12}  {spark:{left}}  {position}")
    if len(rows) > _MOST_ROWS:
        lines.append(f"  {'...':>6}  and {len(rows) - _MOST_ROWS} more seeds (--json lists all)")
    if measured.band is not None and len(measured.band.median) > 1:
        spark = sparkline(measured.band.median, left, ramp, log=log)
        middle = figure(measured.band.median[-1])
        lines.append(style.paint(f"  {'median':>6}  {middle:>12}  {spark}", "bold"))
    return lines


def statistics_rows(measured: Measured) -> list[tuple[str, str]]:
    """Give mean, deviation and range of the final values, each with its name."""
    estimate = measured.estimate
    if estimate is None:
        return [("mean", "none, because no final value is finite")]
    if measured.same_bits:
        same = "no deviation and no interval: every seed gave the same bits"
        return [("mean", f"{figure(estimate.mean)}, {same}")]
    rows = [("mean", figure(estimate.mean)), ("sd", figure(estimate.sd))]
    if estimate.n == 1:
        rows[1] = ("sd", "none: one value")
    if estimate.interval is not None:
        low, high = estimate.interval
        rows[0] = (
            "mean",
            f"{figure(estimate.mean)}, 95 % interval {figure(low)} to {figure(high)} (t, n = {estimate.n})",
        )
    relative = estimate.sd / abs(estimate.mean) if estimate.mean and math.isfinite(estimate.sd) else math.nan
    if math.isfinite(relative):
        rows[1] = ("sd", f"{figure(estimate.sd)} ({_percent(relative)} of the mean)")
    rows.append(("range", f"{figure(estimate.least)} to {figure(estimate.most)}"))
    if estimate.most > estimate.least and estimate.n > 2:
        text = (
            f"a single run can land anywhere in that range: half of the pairs of these seeds differ by "
            f"{figure(estimate.gap)} or more, the most distant by {figure(estimate.most - estimate.least)}"
        )
        rows.append(("so", text))
    return rows


def _contrast(contrast: Contrast, metric: str, style: Style) -> list[str]:
    colour = {"yes": "green", "no": "yellow"}.get(contrast.verdict, "yellow")
    head = f"differ beyond seed noise: {contrast.verdict}"
    lines = style.wrap(f"{head} ({compared_seeds(contrast)})", hanging=2)
    lines[0] = lines[0].replace(head, style.paint(head, "bold", colour), 1)
    return [*lines, *_rows(contrast_rows(contrast, printable(metric)), style)]


def compared_seeds(contrast: Contrast) -> str:
    """Say how many seeds were compared, and how."""
    n, other = contrast.n
    return f"{n} seeds, compared seed by seed" if contrast.paired else f"{n} and {other} seeds"


def contrast_rows(contrast: Contrast, metric: str) -> list[tuple[str, str]]:
    """Give the difference between two configurations, its interval and tests, each with its name."""
    rows = [("why", contrast_sentence(contrast))]
    if contrast.difference is not None:
        text = f"{figure(contrast.difference, sign=True)} in {metric}"
        if contrast.interval is not None:
            low, high = contrast.interval
            text += f", 95 % interval {figure(low, sign=True)} to {figure(high, sign=True)}"
        rows.append(("B minus A", text))
    if contrast.opposite:
        share = _percent(contrast.opposite)
        text = f"{share} of the pairs of single runs with different seeds show the opposite"
        rows.append(("single runs", text))
    named = [
        ("paired t" if contrast.paired else "Welch's t", contrast.t_p),
        ("permutation", contrast.permutation_p),
        ("Welch's t without the pairs", contrast.welch_p if contrast.paired else None),
    ]
    tests = ", ".join(f"{name} p = {p:.2g}" for name, p in named if p is not None)
    return [*rows, ("tests", tests)] if tests else rows


def figure(value: float, *, sign: bool = False) -> str:
    """Return a number with five significant digits."""
    if not math.isfinite(value):
        return str(value)
    return f"{value:+.5g}" if sign else f"{value:.5g}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def _rows(rows: Sequence[tuple[str, str]], style: Style) -> list[str]:
    return [line for label, text in rows for line in _row(label, text, style)]


def _row(label: str, text: str, style: Style) -> list[str]:
    return row(label, text, style, _LABEL)


def _shown(path: str) -> str:
    return printable(shown_path(path))
