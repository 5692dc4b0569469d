"""The table of costs: columns that never run into each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from samebits.commands.cost import Cost, CostReport, CostRequest, Unmeasured, Variant, WhyUnmeasured
from samebits.recording.runner import Target
from samebits.report.cost import _UNMEASURED, render_cost, render_cost_json, unmeasured_words
from samebits.report.style import Style
from samebits.switches.switch import Control

REQUEST = CostRequest(Target("train.py", None, ()), Path("x"), Control(), 5, 20, 3, "nothing")


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


def test_what_is_not_measured_is_listed_by_reason():
    """Those that are only watched are counted."""
    left_out = (
        Unmeasured("a", WhyUnmeasured.WATCHED), Unmeasured("b", WhyUnmeasured.NO_READER, "numba"),
        Unmeasured("c", WhyUnmeasured.WATCHED), Unmeasured("d", WhyUnmeasured.NO_READER, "numba"),
    )  # fmt: skip
    report = CostReport(REQUEST, (Cost(Variant("off", None), (1.0,), (1.0,)),), left_out)

    assert render_cost(report, Style(width=90)).splitlines()[-2:] == [
        "Not measured (watched, not set): 2 switches.",
        "Not measured (only numba reads it, which is not installed): b, d.",
    ]
    assert json.loads(render_cost_json(report))["left_out"][1] == {
        "name": "b",
        "reason": "only numba reads it, which is not installed",
    }


def test_each_reason_not_to_measure_is_said():
    """From its code and its detail."""
    assert set(_UNMEASURED) == set(WhyUnmeasured)
    assert unmeasured_words(Unmeasured("a", WhyUnmeasured.NOT_SET, "torch has none")) == "torch has none"
    said = {unmeasured_words(Unmeasured("a", why, "x")) for why in WhyUnmeasured}
    assert len(said) == len(WhyUnmeasured)
