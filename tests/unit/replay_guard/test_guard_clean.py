"""Without a fault there is no alarm, and the training has the bits that it has without a guard."""

from __future__ import annotations

import itertools
import warnings

import pytest
from guard_support import MODELS, Training

from samebits import ReplayGuard

STEPS = 200


@pytest.mark.parametrize("name", MODELS)
def test_no_false_alarm_and_the_same_bits(name):
    plain = Training(name).train(STEPS)
    training = Training(name)
    guard = ReplayGuard(training.model, every=1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        guarded = training.train(STEPS, guard)

    assert guarded == plain
    assert (guard.steps, guard.replays, guard.mismatches) == (STEPS, STEPS, ())


@pytest.mark.parametrize(("every", "replays"), [(1, 10), (3, 4), (10, 1), (100, 1)])
def test_every_nth_step_is_executed_again(every, replays):
    training = Training("mlp")
    guard = ReplayGuard(training.model, every=every)
    calls = []
    handle = training.model.register_forward_hook(lambda *_: calls.append(1))
    training.train(10, guard)
    handle.remove()

    assert guard.replays == replays
    assert len(calls) >= 10 + replays


def test_two_guards_in_turn_do_not_disturb_each_other():
    plain = Training("cnn").train(6)
    training = Training("cnn")
    first, second = ReplayGuard(training.model, every=2), ReplayGuard(training.model, every=3)

    turn = itertools.count()

    def both(step, *batch):
        return (second if next(turn) % 2 else first)(step, *batch)

    assert training.train(6, both) == plain
    assert (first.steps, second.steps) == (3, 3)
    assert min(first.replays, second.replays) > 0
