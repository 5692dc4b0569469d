"""From the names of interventions to what a run gets."""

from __future__ import annotations

import pytest

from samebits.errors import SamebitsError
from samebits.interventions import INTERVENTIONS, combine, intervention_named, why_not, without_implied
from samebits.interventions.intervention import Intervention
from samebits.interventions.plan import check_interventions
from samebits.switches.switch import Control


def test_every_intervention_does_something():
    for intervention in INTERVENTIONS:
        assert (
            intervention.environment or intervention.sources or intervention.switches or intervention.patch
        ), intervention.name
    assert len({intervention.name for intervention in INTERVENTIONS}) == len(INTERVENTIONS)


def test_no_interventions_leave_everything():
    plan = combine((), None, {})

    assert (plan.environment, plan.fixed_layout, plan.control) == ({}, False, None)


def test_no_interventions_leave_the_users_control():
    control = Control(seed=3)

    assert combine((), control, {}).control is control


def test_a_seed_intervention_seeds_one_library_only():
    control = combine(("seed-numpy",), None, {}).control

    assert control is not None
    assert control.seed is not None
    assert control.seeds("numpy")
    assert not control.seeds("python")
    assert not control.seeds("torch")
    assert not control.all_switches


def test_seed_interventions_add_up():
    control = combine(("seed-numpy", "seed-python"), None, {}).control

    assert control is not None
    assert control.sources == ("numpy", "python")


def test_the_users_seed_stays():
    control = combine(("seed-numpy", "clock"), Control(seed=3), {}).control

    assert control == Control(seed=3, pins=("clock",))


def test_the_users_value_of_a_switch_stays():
    control = combine(("threads",), Control(switches=(("threads", "4"),)), {}).control

    assert control is not None
    assert control.switches == (("threads", "4"),)


def test_a_hash_seed_that_is_fixed_stays_and_random_is_replaced():
    assert "PYTHONHASHSEED" not in combine(("hash-seed",), None, {"PYTHONHASHSEED": "7"}).environment
    assert combine(("hash-seed",), None, {"PYTHONHASHSEED": "random"}).environment["PYTHONHASHSEED"] == "0"


def test_tunables_of_the_user_are_kept_before_ours():
    plan = combine(("fill",), None, {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"})

    assert plan.environment["GLIBC_TUNABLES"].startswith("glibc.malloc.arena_max=1:glibc.malloc.perturb=")


def test_variables_of_switches_are_in_the_environment():
    assert combine(("deterministic",), None, {}).environment["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


def test_control_with_interventions_survives_json():
    import json

    control = combine(("seed-torch", "clock"), None, {}).control

    assert control is not None
    assert Control.from_dict(json.loads(json.dumps(control.to_dict()))) == control


def test_an_unknown_intervention_is_refused_with_the_names():
    with pytest.raises(SamebitsError, match="did you mean clock") as caught:
        intervention_named("clok")
    assert caught.value.slug == "pin-unknown"
    assert "seed-numpy" in str(caught.value)


def test_no_unlike_intervention_is_suggested():
    with pytest.raises(SamebitsError, match="there is no pin 'nope'; expected one of"):
        intervention_named("nope")


def test_an_impossible_intervention_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr("samebits._runtime.address_layout.can_fix_layout", lambda: False)

    assert "personality" in why_not("layout")
    with pytest.raises(SamebitsError, match="personality") as caught:
        check_interventions(["clock", "layout"])
    assert caught.value.slug == "pin-impossible"


def test_an_intervention_is_possible_unless_it_says_otherwise():
    assert why_not(Intervention("x", "with x")) == ""


def test_an_intervention_that_another_one_has_within_it_is_not_needed():
    """Fixed addresses need a fixed hash seed; a frozen clock needs nothing else."""
    assert without_implied(("hash-seed", "clock", "layout", "clock")) == ("clock", "layout")
    assert without_implied(("hash-seed", "clock")) == ("hash-seed", "clock")
    assert len(without_implied(intervention.name for intervention in INTERVENTIONS)) == len(INTERVENTIONS) - 1
