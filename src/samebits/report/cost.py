"""The cost of switches, as a table with bars and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from samebits.commands.cost import AGAIN, OFF, ON, WhyUnmeasured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from samebits.commands.cost import Cost, CostReport, Unmeasured
    from samebits.report.style import Style

_LEAST_NAME, _MOST_NAME, _MOST_BAR = 12, 30, 40
_GAP = "  "
_HEAD = ("", "ms/step", "cost", "spread")
_UNMEASURED: Mapping[WhyUnmeasured, str] = {
    WhyUnmeasured.WATCHED: "watched, not set",
    WhyUnmeasured.NOT_COMPILED: "the script compiles nothing",
    WhyUnmeasured.NOT_SET: "{}",
    WhyUnmeasured.UNCHANGED: "it has the wanted value without control too",
    WhyUnmeasured.NO_READER: "only {} reads it, which is not installed",
    WhyUnmeasured.NO_CUDA: "it acts on CUDA only, and there is no CUDA device",
}


def render_cost(report: CostReport, style: Style) -> str:
    """Return a table: the cost of each variant, its spread, and a bar.

    Args:
        report: what was measured.
        style: width and colour.
    """
    measured = [cost for cost in report.costs if not cost.failure]
    longest = max((abs(cost.ratio - 1) for cost in measured), default=0.0) or 1.0
    cells = [_cells(cost) for cost in report.costs]
    widths = [max(map(len, column)) for column in zip(_HEAD, *cells, strict=True)]
    widths[0] = min(widths[0], max(_LEAST_NAME, style.width - sum(widths[1:]) - len(_GAP) * len(widths[1:])))
    bar_width = min(_MOST_BAR, style.width - sum(widths) - len(_GAP) * len(widths))
    lines = [style.paint(_aligned(_HEAD, widths), "dim")]
    for cost, row in zip(report.costs, cells, strict=True):
        end = (
            _failure(cost, style, widths[0])
            if cost.failure
            else _bar(cost, longest, bar_width, style, clear=report.is_clear(cost))
        )
        lines.append(f"{_aligned(row, widths)}{_GAP}{end}".rstrip())
    lines += ["", *style.wrap(how_measured(report))]
    lines += _left_out(report, style)
    return "\n".join(lines)


def render_cost_json(report: CostReport) -> str:
    """Return the same as one JSON object."""
    rows: list[dict[str, Any]] = [
        {
            "name": cost.variant.name,
            "over": cost.variant.over,
            "note": cost.variant.why,
            "seconds": list(cost.seconds),
            "ratios": list(cost.ratios),
            "failure": cost.failure,
        }
        for cost in report.costs
    ]
    left_out = [{"name": each.switch, "reason": unmeasured_words(each)} for each in report.left_out]
    fields = {
        "schema": 1,
        "steps": report.steps,
        "noise": report.noise,
        "machine": report.machine or None,
        "costs": rows,
        "left_out": left_out,
    }
    return json.dumps(fields, indent=2)


def _cells(cost: Cost) -> tuple[str, str, str, str]:
    return cost.variant.name[:_MOST_NAME], *figures(cost)


def figures(cost: Cost) -> tuple[str, str, str]:
    """Return the time of a step, the cost and its spread; a failure has no figures."""
    if cost.failure:
        return "", "", ""
    milliseconds = f"{1e3 * sorted(cost.seconds)[len(cost.seconds) // 2]:.2f}"
    if cost.variant.name == OFF:
        return milliseconds, "", ""
    low, high = cost.spread
    return milliseconds, percent(cost.ratio), f"{percent(low)} to {percent(high)}"


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Align the name left and the figures right."""
    name, *values = (
        f"{cell[:width]:{'<' if index == 0 else '>'}{width}}"
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return _GAP.join((name, *values))


def _failure(cost: Cost, style: Style, name_width: int) -> str:
    width = max(20, style.width - name_width - len(_GAP))
    return style.paint(f"not measured: {cost.failure}"[:width], "yellow")


def _bar(cost: Cost, longest: float, width: int, style: Style, *, clear: bool) -> str:
    if cost.variant.name == OFF:
        return ""
    colour = ("red" if cost.ratio > 1 else "green") if clear else "dim"
    return style.paint("#" * round(width * abs(cost.ratio - 1) / longest), colour)


def percent(ratio: float) -> str:
    """Return a ratio as what it adds: `+3.2%`; a large one as `12x`."""
    return f"{100 * (ratio - 1):+.1f}%" if abs(ratio - 1) < 9.995 else f"{ratio:.0f}x"


def how_measured(report: CostReport) -> str:
    """Say what the figures are, and how much of them is noise."""
    request = report.request
    text = (
        f"ms/step is the median time of {report.steps} steps in each of {request.rounds} runs. cost is the "
        "median of the ratios to `off` in the same round; spread is the smallest and the largest ratio. "
        f"`off again` repeats `off`: equal variants differ by up to {100 * report.noise:.1f}% here, so less "
        "is noise."
    )
    known = (OFF, ON, AGAIN)
    notes = [
        f"{cost.variant.name} is measured {cost.variant.why}."
        for cost in report.costs
        if cost.variant.why and cost.variant.name not in known
    ]
    where = (
        [f"All runs were made on {report.machine}; another machine has other costs."]
        if report.machine
        else []
    )
    return " ".join([text, *where, *notes])


def unmeasured_words(unmeasured: Unmeasured) -> str:
    """Say why a switch is not measured."""
    return _UNMEASURED[unmeasured.why].format(unmeasured.detail)


def _left_out(report: CostReport, style: Style) -> list[str]:
    return [line for text in left_out_sentences(report) for line in style.wrap(text, hanging=2)]


def left_out_sentences(report: CostReport) -> list[str]:
    """Say which switches were not measured, and why."""
    switches: dict[str, list[str]] = {}
    for each in report.left_out:
        switches.setdefault(unmeasured_words(each), []).append(each.switch)
    lines = []
    for reason, names in switches.items():
        many = reason == _UNMEASURED[WhyUnmeasured.WATCHED]
        listed = f"{len(names)} switches" if many else ", ".join(names)
        lines.append(f"Not measured ({reason}): {listed}.")
    return lines
