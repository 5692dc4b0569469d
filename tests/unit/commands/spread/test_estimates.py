"""Statistics of final values, beside scipy's own."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from samebits.commands.spread import _estimates
from samebits.commands.spread._estimates import contrast, estimate
from samebits.commands.spread.summary import ContrastReason
from samebits.report.spread_sentences import contrast_sentence

stats = pytest.importorskip("scipy.stats")


def values(n: int, mean: float = 0.0, first: int = 0) -> dict[int, float]:
    """Normal values by seed."""
    draw = random.Random(n + first)
    return {seed: draw.gauss(mean, 1.0) for seed in range(first, first + n)}


def test_estimate_is_scipys():
    """Mean, deviation and t interval."""
    finals = values(7, mean=3.0)
    data = list(finals.values())

    found = estimate(finals)

    expected = stats.t.interval(0.95, 6, loc=statistics.fmean(data), scale=stats.sem(data))
    assert found.interval == pytest.approx(expected)
    assert (found.n, found.least, found.most) == (7, min(data), max(data))
    assert found.sd == pytest.approx(statistics.stdev(data))


def test_interval_holds_the_mean_as_often_as_it_says():
    """95 of 100 times, within what 2000 tries can show."""
    hits = 0
    for attempt in range(2000):
        draw = random.Random(attempt)
        low, high = estimate({seed: draw.gauss(5.0, 2.0) for seed in range(5)}).interval
        hits += low <= 5.0 <= high

    assert 0.93 < hits / 2000 < 0.97


def test_diverged_runs_are_named_and_left_out():
    """The rest counts."""
    found = estimate({0: 1.0, 1: math.nan, 2: 3.0, 3: math.inf})

    assert (found.n, found.mean, found.left_out) == (2, 2.0, (1, 3))
    assert estimate({0: math.nan}) is None


def test_one_value_has_no_interval():
    """Nor a deviation."""
    found = estimate({0: 1.0})

    assert found.interval is None
    assert math.isnan(found.sd)


def test_paired_contrast_is_scipys():
    """Same seeds: paired t test, with the exact sign-flip test beside it."""
    first = values(8)
    second = {seed: value + 0.5 + 0.1 * (seed % 3) for seed, value in first.items()}

    found = contrast(first, second)

    expected = stats.ttest_rel(list(second.values()), list(first.values()))
    assert (found.verdict, found.paired, found.n) == ("yes", True, (8, 8))
    assert found.t_p == pytest.approx(expected.pvalue)
    assert found.permutation_p == pytest.approx(2 / 2**8)
    assert found.interval == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert found.difference == pytest.approx(0.5 + 0.1 * statistics.fmean(seed % 3 for seed in range(8)))
    # The noise that both share hides the difference from a test that does not use the pairs.
    assert found.welch_p > 0.05


def test_unpaired_contrast_is_scipys():
    """Other seeds: Welch's test."""
    first, second = values(6), values(7, mean=5.0, first=100)

    found = contrast(first, second)

    expected = stats.ttest_ind(list(second.values()), list(first.values()), equal_var=False)
    assert (found.verdict, found.paired, found.n) == ("yes", False, (6, 7))
    assert found.t_p == pytest.approx(expected.pvalue)
    assert found.permutation_p < 0.05


def test_how_often_single_runs_mislead():
    """Counted over all pairs of different seeds."""
    first = dict(enumerate([0.0, 2.0, 4.0, 6.0, 8.0, 10.0]))
    second = {seed: value + 3.0 for seed, value in first.items()}

    wrong = [(i, j) for i in first for j in second if i != j and second[j] <= first[i]]
    assert contrast(first, second).opposite == pytest.approx(len(wrong) / 30)


def test_no_difference():
    """And how large one could have been missed."""
    first = values(10)
    second = {seed: value + random.Random(seed).gauss(0, 1) for seed, value in first.items()}
    second = {seed: value - statistics.fmean(second.values()) + statistics.fmean(first.values())
              for seed, value in second.items()}  # fmt: skip

    found = contrast(first, second)

    assert found.verdict == "no"
    assert found.reason == ContrastReason.NO_TEST
    largest = max(map(abs, found.interval))
    assert contrast_sentence(found).endswith(f"one of up to {largest:.3g} is not excluded")


@pytest.mark.parametrize("n", [2, 3, 5])
def test_too_few_seeds(n):
    """No permutation test of five pairs can reach 0.05, so that nothing is claimed, however far apart."""
    found = contrast(values(n), {seed: value + 100 for seed, value in values(n).items()})

    assert found.verdict == "cannot tell"
    assert f"n = {n}: too few" in contrast_sentence(found)


def test_equal_values():
    """The same value for every seed."""
    assert contrast(values(6), values(6)).verdict == "no"


def test_constant_difference():
    """Without variance there is still a verdict, and no warning."""
    first = {seed: float(seed) for seed in range(8)}

    assert contrast(first, {seed: value + 1 for seed, value in first.items()}).verdict == "yes"


def test_tests_that_disagree():
    """One outlier."""
    first = dict.fromkeys(range(7), 0.0)
    second = {0: 1.0, 1: 1.1, 2: 0.9, 3: 1.0, 4: 1.0, 5: 1.0, 6: 30.0}

    found = contrast(first, second)

    assert found.t_p > 0.05 > found.permutation_p
    assert found.verdict == "cannot tell"


def test_without_scipy(monkeypatch):
    """No interval and no verdict, and why."""
    monkeypatch.setattr(_estimates, "scipy_stats", lambda: None)

    assert estimate(values(5)).interval is None
    assert contrast(values(8), values(8, mean=9.0)).reason == ContrastReason.NO_SCIPY
