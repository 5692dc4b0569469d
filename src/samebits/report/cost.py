"""What switches cost, as a table with bars and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from samebits.cost.results import AGAIN, OFF, ON
from samebits.cost.variants import WATCHED

if TYPE_CHECKING:
    from samebits.cost.results import Cost, CostReport
    from samebits.report.style import Style

_NAME, _FIGURES = 30, 36
_MOST_BAR = 40


def render_cost(report: CostReport, style: Style) -> str:
    """A table: what each variant costs, its spread, and a bar.

    Args:
        report: what was measured.
        style: width and colour.
    """
    measured = [cost for cost in report.costs if not cost.failure]
    longest = max((abs(cost.ratio - 1) for cost in measured), default=0.0) or 1.0
    lines = [style.paint(f"{'':{_NAME}}{'ms/step':>9}{'cost':>9}{'spread':>18}", "dim")]
    lines += [_row(cost, report.noise, longest, style) for cost in report.costs]
    lines += ["", *style.wrap(_how(report))]
    lines += _left_out(report, style)
    return "\n".join(lines)


def render_cost_json(report: CostReport) -> str:
    """The same as one JSON object."""
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
    left_out = [{"name": name, "reason": reason} for name, reason in report.left_out]
    fields = {"schema": 1, "steps": report.steps, "noise": report.noise, "costs": rows, "left_out": left_out}
    return json.dumps(fields, indent=2)


def _row(cost: Cost, noise: float, longest: float, style: Style) -> str:
    name = f"{cost.variant.name[: _NAME - 1]:{_NAME}}"
    if cost.failure:
        return (name + style.paint(f"not measured: {cost.failure}", "yellow"))[: style.width + 9]
    milliseconds = f"{1e3 * sorted(cost.seconds)[len(cost.seconds) // 2]:9.2f}"
    if cost.variant.name == OFF:
        return name + milliseconds
    low, high = cost.spread
    figures = f"{_percent(cost.ratio):>9}{f'{_percent(low)} to {_percent(high)}':>18}"
    room = min(_MOST_BAR, style.width - _NAME - _FIGURES - 2)
    bar = "#" * round(room * abs(cost.ratio - 1) / longest)
    clear = low - 1 > noise or 1 - high > noise
    colour = ("red" if cost.ratio > 1 else "green") if clear else "dim"
    return f"{name}{milliseconds}{figures}  {style.paint(bar, colour)}".rstrip()


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}%" if abs(ratio - 1) < 9.995 else f"{ratio:.0f}x"


def _how(report: CostReport) -> str:
    request = report.request
    text = (
        f"Median time of {report.steps} steps in each of {request.rounds} runs; cost: median over the runs "
        "of the ratio to `off` in the same round; spread: the least and the greatest. `off again` is off "
        f"once more: two equal variants differ by up to {100 * report.noise:.1f}% here; less is noise."
    )
    known = (OFF, ON, AGAIN)
    notes = [
        f"{cost.variant.name} is measured {cost.variant.why}."
        for cost in report.costs
        if cost.variant.why and cost.variant.name not in known
    ]
    return " ".join([text, *notes])


def _left_out(report: CostReport, style: Style) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for name, reason in report.left_out:
        reasons.setdefault(reason, []).append(name)
    lines = []
    for reason, names in reasons.items():
        listed = ", ".join(names) if reason != WATCHED else f"{len(names)} switches"
        lines += style.wrap(f"Not measured ({reason}): {listed}.", hanging=2)
    return lines
