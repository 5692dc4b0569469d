"""The facts about what was not restored."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from samebits.commands.resume_check._alignment import Start
from samebits.commands.resume_check._omissions import Boundary, _optimizer, _settings, _state, wrong_variables
from samebits.commands.resume_check._state_log import Before
from samebits.commands.resume_facts import Fact, FactCode, Omission, Part
from samebits.records.kinds import Role

EARLIER = Fact.of(FactCode.STATE_BEFORE_STEP, 0)


def before(step, state="", *, optimizer="", **fields):
    """The state before a step, of one generator only."""
    known = {"generators": {"torch": state}, "settings": {}, "variables": {}, **fields}
    return Before(step, "", "", optimizer, **known)


def boundary(due, resumed, initial=None):
    """The point at which a run is resumed at step 3."""
    return Boundary(Start(3), due, resumed, initial or before(0))


@pytest.mark.parametrize(
    ("ends", "seen", "fact"),
    [
        ({"torch": "b"}, {"torch": EARLIER}, Fact.of(FactCode.STATE_LATE, 2)),
        ({"torch": "a"}, {"torch": EARLIER}, EARLIER),
        ({}, {}, Fact.of(FactCode.STATE_OF_NO_STEP)),
    ],
)
def test_a_generator_that_stands_elsewhere(ends, seen, fact):
    """That it was not restored is said only where it stands as it once did."""
    assert _state("torch", boundary(before(3, "a"), before(0, "b")), ends, seen) == fact


def test_settings_by_part():
    """Each part has one fact with all its settings; counters that add nothing are left out."""
    due = {
        "Adam group 0 lr": "0.1",
        "StepLR last_epoch": "8",
        "StepLR _step_count": "9",
        "GradScaler scale": "4.0",
    }
    resumed = {**dict.fromkeys(due, "0"), "GradScaler scale": "1.0"}

    found = _settings(boundary(before(3, settings=due), before(0, settings=resumed)))

    def differs(part, *setting):
        return Omission(part, Fact.of(FactCode.SETTINGS_DIFFER, setting))

    assert found == [
        differs(Part.HYPERPARAMETERS, "Adam group 0 lr", "0", "0.1"),
        differs(Part.SCHEDULE, "StepLR last_epoch", "0", "8"),
        differs(Part.SCALER, "GradScaler scale", "1.0", "4.0"),
    ]


@pytest.mark.parametrize(
    ("resumed", "fact"),
    [
        ({}, Fact.of(FactCode.OPTIMIZER_EMPTY, ("a", "b"))),
        ({"b": "2"}, Fact.of(FactCode.OPTIMIZER_DIFFERS, ("a",), 2)),
        ({"a": "1", "b": "3"}, Fact.of(FactCode.OPTIMIZER_DIFFERS, ("b",), 2)),
    ],
)
def test_state_of_an_optimizer(resumed, fact):
    """It has none, lacks a value, or has another one."""
    state = {(Role.OPTIMIZER, "a"): "1", (Role.OPTIMIZER, "b"): "2"}
    tensors = tuple((Role.OPTIMIZER, name, digest) for name, digest in resumed.items())
    at = boundary(before(3, optimizer="x"), before(0, optimizer="y", tensors=tensors))

    assert _optimizer(state, at) == [Omission(Part.OPTIMIZER, fact)]


def test_variables_by_name(tmp_path):
    """A number as at the start, or other contents; the parts of one variable are counted together."""
    log = tmp_path / "whole.states"
    log.write_text("")
    due = before(3, variables={"n": "8", "m": "5", "ema['a']": "tensor 1", "ema['b']": "tensor 2"})
    resumed = before(0, variables={"n": "0", "m": "4", "ema['a']": "tensor 3", "ema['b']": "tensor 4"})

    found = wrong_variables(
        SimpleNamespace(log=log), due, resumed, before(0, variables={"n": "0"}), frozenset()
    )

    counter = ("n", Fact.of(FactCode.VALUE_AT_START, "n", "0", "8"), 0)
    average = ("ema", Fact.of(FactCode.OTHER_CONTENTS, "tensor", "ema['a']", None), 1)
    assert found == [Omission(Part.VARIABLES, Fact.of(FactCode.VARIABLES, counter, average))]
