"""The table of costs: columns that never run into each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from samebits.commands.cost import Cost, CostReport, CostRequest, Variant
from samebits.recording.runner import Target
from samebits.report.cost import render_cost
from samebits.report.style import Style
from samebits.switches.switch import Control

REQUEST = CostRequest(Target("train.py", None, ()), Path("x"), Control())


@pytest.mark.parametrize("width", [40, 80, 100])
@pytest.mark.parametrize("seconds", [0.0001, 0.5, 250.0])
@pytest.mark.parametrize(
    "ratios", [(0.5, 0.9, 1.0), (1.001, 1.01, 1.02), (2.5, 5.99, 9.9), (20.0, 150.0, 4000.0)]
)
def test_columns_stay_apart(width, seconds, ratios):
    """Two blanks between any two figures, all rows of one width, whatever the figures are."""
    costs = (
        Cost(Variant("off", None), (seconds,) * 3, (1.0,) * 3),
        Cost(Variant("x" * 40, None), (seconds * 3,) * 3, ratios),
        Cost(Variant("deterministic-algorithms", None), failure="RuntimeError: no"),
    )

    head, off, row, failed, *_ = render_cost(CostReport(REQUEST, costs), Style(width=width)).splitlines()

    assert head.split() == ["ms/step", "cost", "spread"]
    assert len(row.removesuffix("#" * row.count("#")).rstrip()) == len(head)
    name, milliseconds, cost, spread, *bar = [part.strip() for part in row.split("  ") if part.strip()]
    assert name == "x" * len(name)
    assert 12 <= len(name) <= 30
    assert float(milliseconds) == pytest.approx(3e3 * seconds, abs=0.01)
    assert cost.endswith(("%", "x"))
    assert " to " in spread
    assert set("".join(bar)) <= {"#"}
    assert "not measured: Runt" in failed
    assert off.split() == ["off", f"{1e3 * seconds:.2f}"]
