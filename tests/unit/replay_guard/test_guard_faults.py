"""Planted faults: every flipped bit that reaches the training is found, and its kind is told."""

from __future__ import annotations

import os
import random

import pytest
import torch
from flip_support import BitFlip
from guard_support import MODELS, Training

from samebits import MismatchKind, ReplayGuard, ReplayMismatchError
from samebits.replay_guard._inspection import first_difference
from samebits.replay_guard._step import Result, digests_of

PLACES = 200
EXECUTIONS = (0, 2)  # the first, and the one that it is compared with; between them the step is looked at


def outcome(training: Training, guard: ReplayGuard | None = None):
    """Bits after forward and backward of one step from the same beginning."""
    training.begin()
    return training.step(guard)


@pytest.mark.parametrize("name", MODELS)
def test_every_flip_that_reaches_the_training_is_found(name):
    """200 places in all over the models: module, element, bit, pass and execution are drawn."""
    draw = random.Random(name)
    reached = 0
    training = Training(name)
    clean = outcome(training)
    for _ in range(-(-PLACES // len(MODELS))):
        module = draw.choice(training.places)
        place = (draw.randrange(1 << 20), draw.randrange(32))
        backward, execution = draw.random() < 0.4, draw.randrange(2)
        fault = BitFlip(module, {0}, place, backward=backward)
        harmful = outcome(training) != clean
        fault.remove()
        assert fault.made == 1

        fault = BitFlip(module, {EXECUTIONS[execution]}, place, backward=backward)
        guard = ReplayGuard(training.model, every=1, on_mismatch=lambda mismatch: None)
        bits = outcome(training, guard)
        fault.remove()

        assert bool(guard.mismatches) == harmful, (type(module), place, backward, execution)
        assert (bits != clean) == (harmful and execution == 0)  # the training keeps the first execution
        reached += harmful
        if harmful:
            (found,) = guard.mismatches
            assert found.kind == MismatchKind.TRANSIENT
            assert (found.odd, found.executions) == (execution + 1, ("abbb", "abaa")[execution])
            assert found.training_is_wrong is (execution == 0)
            assert found.n_tensors >= 1
            assert found.tensors
    assert reached > 10


@pytest.mark.parametrize("seed", range(10))
def test_what_differs_each_time_is_nondeterministic(seed):
    training = Training("mlp")
    fault = BitFlip(training.places[-1], None, seed=seed)  # no dropout after it swallows a flip
    guard = ReplayGuard(training.model, every=1)

    with pytest.raises(ReplayMismatchError, match="nondeterministic") as raised:
        outcome(training, guard)
    fault.remove()

    found = raised.value.mismatch
    assert found.kind == MismatchKind.NONDETERMINISTIC
    assert len(set(found.executions)) > 2
    assert found.odd is None
    assert found.ops == ()  # the flip is no op of torch's that differs on the same inputs
    assert "op was seen to differ" in str(found)


def test_the_same_wrong_value_each_time_is_not_seen_on_one_rank():
    """The page says so: it takes another rank."""
    training = Training("mlp")
    fault = BitFlip(training.places[0], None, (3, 22))
    guard = ReplayGuard(training.model, every=1)

    outcome(training, guard)
    fault.remove()

    assert guard.replays == 1
    assert guard.mismatches == ()


@pytest.fixture
def racy():
    """An op that gives other bits each time, as a kernel with atomics may."""
    library = torch.library.Library("guard_test", "FRAGMENT")
    library.define("racy(Tensor x) -> Tensor")

    def compute(x):
        return x + int.from_bytes(os.urandom(2), "big") * 1e-3

    library.impl("racy", compute, "CPU")
    library.impl("racy", torch.empty_like, "Meta")
    torch.library.register_autograd("guard_test::racy", lambda ctx, gradient: gradient, lib=library)
    yield torch.ops.guard_test.racy
    library._destroy()


def test_a_nondeterministic_op_is_named_with_its_line(racy):
    model = torch.nn.Linear(4, 2)
    guard = ReplayGuard(model, every=1, on_mismatch=lambda mismatch: None)

    def step(x):
        y = racy(model(x))  # this line
        loss = y.square().sum()
        loss.backward()
        return loss

    guard(step, torch.ones(3, 4))

    (found,) = guard.mismatches
    line = step.__code__.co_firstlineno + 1
    assert found.kind == MismatchKind.NONDETERMINISTIC
    assert [op.op for op in found.ops] == ["guard_test::racy.default"]
    assert (found.ops[0].site.file, found.ops[0].site.line) == (__file__, line)
    assert "guard_test::racy" in str(found)
    assert f":{line}" in str(found)


def test_an_op_that_rarely_differs_is_not_blamed_on_hardware(racy, monkeypatch):
    """Three of four executions agree, but executed again by itself the op differs."""
    calls = iter(
        [*[b"\x00\x00"] * 2, b"\x00\x09", b"\x00\x00", b"\x00\x00", *([b"\x00\x00", b"\x00\x07"] * 20)]
    )
    monkeypatch.setattr(os, "urandom", lambda n: next(calls))
    model = torch.nn.Linear(4, 2)
    guard = ReplayGuard(model, every=1, on_mismatch=lambda mismatch: None)

    def step(x):
        loss = racy(model(x)).square().sum()
        loss.backward()
        return loss

    guard(step, torch.ones(3, 4))

    (found,) = guard.mismatches
    assert found.executions == "abaa"
    assert found.kind == MismatchKind.NONDETERMINISTIC
    assert found.ops


def test_randomness_that_cannot_be_put_back_is_not_blamed_on_hardware():
    model = torch.nn.Linear(4, 2)
    guard = ReplayGuard(model, every=1, on_mismatch=lambda mismatch: None)

    def step(x):
        loss = (model(x) * int.from_bytes(os.urandom(4), "big")).sum()
        loss.backward()
        return loss

    guard(step, torch.ones(3, 4))

    (found,) = guard.mismatches
    assert found.kind == MismatchKind.NONDETERMINISTIC
    assert found.ops == ()
    assert found.training_is_wrong is None


def test_a_repeated_transient_fault_says_how_often():
    training = Training("mlp")
    guard = ReplayGuard(training.model, every=1, on_mismatch=lambda mismatch: None)
    outcome(training, guard)
    for _ in range(3):
        fault = BitFlip(training.places[0], {1}, (0, 25))
        outcome(training, guard)
        fault.remove()

    assert [each.earlier for each in guard.mismatches] == [0, 1, 2]
    assert "2 times before" in str(guard.mismatches[-1])


def test_tensors_and_their_number_are_of_the_same_execution():
    """The second execution agrees and a later one does not, as where another rank had a mismatch."""

    def result(value, error=""):
        if error:
            return Result((), b"", error=error)
        tensors = torch.tensor([1.0]), torch.tensor([value])
        return Result(("output", "gradient w"), digests_of(tensors), tensors)

    for executions, names in (
        ([result(1.0), result(1.0), result(2.0), result(1.0)], ["gradient w"]),
        ([result(1.0), result(1.0), result(1.0, "ValueError: no"), result(1.0)], []),
        ([result(1.0), result(1.0, "ValueError: no"), result(2.0), result(1.0)], ["gradient w"]),
    ):
        tensors, number = first_difference(executions)
        assert [each.name for each in tensors] == names
        assert number == len(names)
