"""Metrics in printed text."""

from __future__ import annotations

import math

import pytest

from samebits.commands.spread._metrics import Point, series_of
from samebits.commands.spread._outputs import line_points, points_of

LINES = [
    ("step   99  loss 10.655604", {"loss": 10.655604}, {"step": 99}),
    ("epoch 1 | val_acc: 0.93", {"val_acc": 0.93}, {"epoch": 1}),
    ("{'loss': 1.2, 'grad_norm': 2.5, 'epoch': 1.0}", {"loss": 1.2, "grad_norm": 2.5}, {"epoch": 1}),
    ("{'loss': '1.2', 'epoch': '0.5'}", {"loss": 1.2}, {"epoch": 0.5}),
    ('{"epoch": 3, "val": {"loss": 0.5}, "ok": true}', {"val/loss": 0.5}, {"epoch": 3}),
    ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.292", {"train_loss": 2.292}, {"epoch": 1}),
    (
        "Test set: Average loss: 0.0412, Accuracy: 9867/10000 (99%)",
        {"test_average_loss": 0.0412, "test_accuracy": 0.9867},
        {},
    ),
    ("Epoch [1/10], Step [100/600], Loss: 0.2109", {"loss": 0.2109}, {"epoch": 1, "step": 100}),
    (
        "Epoch 3/10 - loss: 0.33 - acc: 0.9 - val_loss: 0.4",
        {"loss": 0.33, "acc": 0.9, "val_loss": 0.4},
        {"epoch": 3},
    ),
    ("epoch 1 train loss 0.5 val loss 0.4", {"train_loss": 0.5, "val_loss": 0.4}, {"epoch": 1}),
    ("Train: loss 0.3 | Val: loss 0.5 acc 0.7", {"train_loss": 0.3, "val_loss": 0.5, "val_acc": 0.7}, {}),
    ("iter 0: loss 4.3749, time 1234.5ms, mfu 3.2%", {"loss": 4.3749}, {"iter": 0}),
    (
        " 50%|█████     | 5/10 [00:01<00:01,  4.50it/s, loss=0.34, acc=0.9]",
        {"loss": 0.34, "acc": 0.9},
        {},
    ),
    ("Epoch 0: 100%|███| 10/10 [00:00<00:00, 5.2it/s, train_loss=0.3]", {"train_loss": 0.3}, {"epoch": 0}),
    ("Accuracy of the network on the 10000 test images: 55 %", {"test_accuracy": 55}, {}),
    ("[1,  2000] loss: 2.187", {"loss": 2.187}, {}),
    ("Loss 6.9412e+00 (7.1)\tAcc@1 0.00 (  0.10)", {"loss": 6.9412, "acc@1": 0}, {}),
    ("2024-01-01 10:22:33,123 INFO trainer: loss=0.5 step=3", {"loss": 0.5}, {"step": 3}),
    ("final test accuracy is 0.93", {"test_final_accuracy": 0.93}, {}),
    ("loss: inf", {"loss": math.inf}, {}),
    ("loss tensor(0.1234, grad_fn=<MeanBackward0>)", {"loss": 0.1234}, {}),
    ("\x1b[32mval/loss\x1b[0m: 3e-1", {"val/loss": 0.3}, {}),
    ("episode 10 reward=-12.5 return: 3e2", {"reward": -12.5, "return": 300}, {"episode": 10}),
    ("global_step 7 eval_loss .5", {"eval_loss": 0.5}, {"global_step": 7}),
    ("loss 0.5s", {}, {}),
    ("Python 3.11.7 on 2 cores", {}, {}),
    ('  File "/code/train.py", line 31, in <module>', {}, {}),
    ("/code/train.py:31: UserWarning: 3 things", {}, {}),
    ("0.5 0.6", {}, {}),
    ("", {}, {}),
    ("{" * 50, {}, {}),
]


@pytest.mark.parametrize(("line", "metrics", "counters"), LINES)
def test_forms_that_scripts_print(line, metrics, counters):
    """Names, values, and what is counted beside them."""
    points = points_of(line)

    assert {point.name: point.value for point in points} == metrics
    assert all(dict(point.counters) == counters for point in points)


def test_nan_is_a_value():
    """A run that diverged shows."""
    assert math.isnan(line_points("loss nan")[0].value)


def test_a_redrawn_line_counts_once():
    """In its last form: how often a bar is drawn depends on time."""
    points = points_of("loss=3.0\r loss=2.0\r loss=1.0\nloss=0.5\n")

    assert [point.value for point in points] == [1.0, 0.5]


def test_series_take_the_counter_that_grows():
    """`step` starts again in each epoch, so that `epoch` does not grow and neither does it."""
    text = "".join(
        f"epoch {epoch} step {step} loss {epoch + step}\n" for epoch in range(2) for step in range(2)
    )

    (series,) = series_of("printed", points_of(text))

    assert (series.counter, series.x) == ("", (1.0, 2.0, 3.0, 4.0))
    assert series.values == (0.0, 1.0, 1.0, 2.0)


def test_series_by_epoch():
    """Named counters are kept as positions."""
    loss, acc = series_of("printed", points_of("epoch 5 loss 2 acc 0.1\nepoch 7 loss 1 acc 0.2\n"))

    assert (loss.counter, loss.x, loss.values) == ("epoch", (5.0, 7.0), (2.0, 1.0))
    assert acc.last_place > loss.last_place


def test_a_counter_that_only_some_points_have():
    """Positions then."""
    (series,) = series_of("logged", [Point("a", 1.0, (("step", 3.0),)), Point("a", 2.0)])

    assert series.counter == ""


def test_random_text_raises_nothing():
    """Whatever a script prints."""
    import random

    letters = "loss=: 0123.e-+/|[](){}'\",nainf%\t\r\x1b_\\é·"
    for _ in range(3000):
        points_of("".join(random.choices(letters, k=40)))
