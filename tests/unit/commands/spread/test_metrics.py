"""Which metric is taken, and what becomes of its curves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from spread_builders import make_configuration, make_run, make_seeding, make_series

from samebits.commands.spread._metrics import band, choose, common_metrics, measure, quantile
from samebits.commands.spread.remarks import remarks
from samebits.errors import SamebitsError
from samebits.report.spread_sentences import sentence


def chosen(*runs, name=None):
    """The name of the metric that is taken."""
    return choose(common_metrics(runs), name).name


def named(seed, *names, source="printed", last=None):
    """A run with one series for each name, in the order in which they ended."""
    given = [make_series(seed, seed + 1, name=n, source=source, last_place=p) for p, n in enumerate(names)]
    return make_run(seed, *given, *([last] if last else []))


def test_only_what_all_runs_have():
    """A metric that one run lacks is none."""
    runs = named(0, "loss", "acc"), named(1, "loss")

    assert [metric.name for metric in common_metrics(runs)] == ["loss"]
    assert common_metrics([]) == ()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("loss", "acc"), "acc"),
        (("acc", "loss", "lr", "time", "seed", "epoch_time"), "loss"),
        (("val_loss", "train_loss"), "val_loss"),
        (("eval_loss", "train_loss", "train_runtime", "train_samples_per_second"), "eval_loss"),
        (("foo", "loss"), "loss"),
        (("ValAcc", "foo"), "ValAcc"),
    ],
)
def test_the_last_printed_metric_of_quality_is_taken(names, expected):
    """On held-out data if there is one; times and learning rates are none."""
    assert chosen(named(0, *names), named(1, *names)) == expected


def test_loss_at_backward_when_nothing_is_printed():
    """Also before a printed number of which nothing is known."""
    backward = make_series(3, 2, name="backward@train.py:9", source="backward")
    read = make_series(3, 2, name="read@train.py:9", source="read")

    assert chosen(make_run(0, read, backward), make_run(1, read, backward)) == "backward@train.py:9"
    assert chosen(named(0, "foo", last=backward), named(1, "foo", last=backward)) == "backward@train.py:9"


def test_logged_before_printed():
    """What is printed is often rounded."""
    runs = [make_run(s, make_series(0, 0), make_series(s, s + 1, source="logged")) for s in range(2)]

    assert choose(common_metrics(runs), None).source == "logged"


def test_a_metric_by_name():
    """Any that there is; else its neighbours are named."""
    runs = named(0, "loss", "val_acc"), named(1, "loss", "val_acc")

    assert chosen(*runs, name="LOSS") == "loss"
    with pytest.raises(SamebitsError, match=r"'val_ac'.*expected one of val_acc"):
        chosen(*runs, name="val_ac")


def test_no_metric_at_all():
    """With what to print."""
    with pytest.raises(SamebitsError, match="no metric in common"):
        chosen(make_run(0), make_run(1))


def test_quantile_is_numpys():
    """Linear interpolation."""
    data = sorted([0.3, 1.7, 2.2, 9.0, 11.5])

    for share in (0.0, 0.1, 0.33, 0.5, 0.9, 1.0):
        assert quantile(data, share) == pytest.approx(np.quantile(data, share))


def test_band_of_few_and_of_many():
    """Least and most below ten curves, deciles from there."""
    few = band([make_series(k, 2 * k) for k in range(3)])
    many = band([make_series(k, 2 * k) for k in range(11)])

    assert (few.low, few.median, few.high, few.label) == ((0, 0), (1, 2), (2, 4), "min-max")
    assert (many.low, many.high, many.label) == ((1, 2), (9, 18), "10-90 %")
    assert band([make_series(1.0)]) is None


def test_band_where_all_have_a_value():
    """A shorter curve ends it; NaN counts as the worst."""
    found = band([make_series(1, 2, 3), make_series(3, math.nan), make_series(5, 6)])

    assert found.x == (1, 2)
    assert found.high == (5, math.inf)


def test_final_value_is_the_mean_of_the_last():
    """`--last`."""
    runs = [make_run(0, make_series(9, 1, 2)), make_run(1, make_series(9, 3, 6))]
    metric = choose(common_metrics(runs), None)

    assert measure(make_configuration(*runs), metric, 1).finals == {0: 2, 1: 6}
    assert measure(make_configuration(*runs), metric, 2).finals == {0: 1.5, 1: 4.5}


def told(*runs, last=1, **fields) -> str:
    """The remarks on those runs."""
    measured = measure(make_configuration(*runs, **fields), choose(common_metrics(runs), None), last)
    return "\n".join(map(sentence, remarks(measured, last)))


def test_nothing_to_remark():
    """Ordinary runs."""
    assert told(make_run(0, make_series(1, 2)), make_run(1, make_series(1, 3))) == ""


def test_a_script_that_seeds_itself():
    """All ends in the same bits: the line that does it, and the way out."""
    runs = [make_run(s, make_series(1, 2), state="x", seedings=(make_seeding(),)) for s in range(3)]

    text = told(*runs)

    assert "every seed gave the same bits" in text
    assert "torch.manual_seed(7) at " in text
    assert "train.py:3" in text
    assert "--seed-argument --seed" in text


def test_a_script_without_randomness():
    """The same bits, and nobody seeds."""
    text = told(*(make_run(s, make_series(1, 2), state="x") for s in range(2)))

    assert "draws from no generator" in text


def test_a_script_that_seeds_a_part():
    """Other bits, but one generator gives the same in each."""
    runs = [
        make_run(s, make_series(1, s), seedings=(make_seeding(), make_seeding(5, f"f({s})"))) for s in (1, 2)
    ]

    text = told(*runs)

    assert "torch.manual_seed(7)" in text
    assert "f(1)" not in text
    assert "every seed" not in text


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        (
            [make_run(s, make_series(1, s), saved=("/code/m.pt",)) for s in (1, 2)],
            "overwrite each other's file",
        ),
        ([make_run(1, make_series(1, 2)), make_run(2, make_series(1, 2, 3))], "2 to 3"),
        ([make_run(s, make_series(1, 1)) for s in (1, 2)], "same in every run"),
        ([make_run(1, make_series(math.nan)), make_run(2, make_series(1))], "seed 1 is NaN or infinite"),
        ([make_run(s, make_series(1, s), threads=s) for s in (1, 2)], "different numbers of threads"),
    ],
)
def test_what_else_is_said(runs, words):
    """Whatever makes the numbers mean less than they seem to."""
    assert words in told(*runs)
