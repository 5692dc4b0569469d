"""Every cause has one specification, and all of them fit together and with the interventions."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path

import pytest

import samebits.causes
from samebits.causes import (
    Cause,
    OriginKind,
    PatchRule,
    Reach,
    cause_of_draw,
    causes_acted_on_by,
    causes_shown_by,
    specification_of,
)
from samebits.interventions import INTERVENTIONS

ALL = [specification_of(cause) for cause in Cause]
KNOWN = [known for known in ALL if known.cause is not Cause.UNKNOWN]
INTERVENTION_NAMES = {intervention.name for intervention in INTERVENTIONS}


def test_each_cause_has_a_module_of_its_name():
    folder = Path(samebits.causes.__file__).parent
    shared = {"__init__", "catalogue", "specification", "unseeded"}
    assert {path.stem for path in folder.glob("*.py")} - shared == {cause.name.lower() for cause in Cause}
    assert [known.cause for known in ALL] == list(Cause)


@pytest.mark.parametrize("known", ALL, ids=lambda known: known.cause)
def test_every_intervention_that_it_names_is_one(known):
    named = {intervention for interventions in known.interventions for intervention in interventions}
    named |= {row.intervention for row in known.evidence} | {
        intervention for row in known.advice for intervention in row.controls
    }
    assert named | ({known.seeded_by} - {""}) <= INTERVENTION_NAMES


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.cause)
def test_it_can_be_shown_and_something_can_be_done(known):
    assert known.sentence
    assert known.interventions
    assert {intervention for interventions in known.interventions for intervention in interventions} <= {
        row.intervention for row in known.evidence
    }
    assert known.advice_for("") is known.advice[-1], "the last advice fits everything"
    for row in known.advice:
        re.compile(row.pattern)
        assert row.controls
        assert not row.text.endswith(".")


def test_every_intervention_is_evidence_for_a_cause_and_no_two_causes_are_equally_likely():
    for intervention in INTERVENTION_NAMES:
        ranks = [
            row.rank
            for known in ALL
            for row in known.evidence
            if row.intervention == intervention and row.rank is not None
        ]
        assert sorted(ranks) == list(range(len(ranks))), intervention
        assert causes_shown_by(intervention)


def test_a_generator_that_a_library_made_has_its_own_advice():
    known = specification_of(Cause.UNSEEDED_NUMPY)
    assert "Faker.seed" in known.advice_for("faker.proxy.Faker", by_library=True).text
    assert "random_state" in known.advice_for("sklearn.cluster.KMeans", by_library=True).text
    assert known.advice_for("faker.proxy.Faker") is known.advice[-1]


@pytest.mark.parametrize(
    ("op", "weighty"),
    [
        ("os.listdir", True),
        ("os.scandir.inode", False),
        ("pathlib.Path.stat.time", False),
        ("secrets.choice", True),
        ("secrets.token_hex", False),
        ("queue.Queue.get", True),
        ("torch.set_num_threads", True),
        ("numpy.random.rand", True),
        ("time.time", False),
        ("os.getpid", False),
    ],
)
def test_draws_that_are_hardly_made_for_logs_are_weighty(op, weighty):
    pattern = specification_of(cause_of_draw(op)).weighty_draws
    assert (pattern is not None and re.match(pattern, op) is not None) == weighty


def test_no_draw_is_of_two_causes():
    for one, other in combinations(KNOWN, 2):
        assert set(one.draws).isdisjoint(other.draws)


@pytest.mark.parametrize(
    ("op", "cause"),
    [
        ("random.SystemRandom.random", Cause.OS_ENTROPY),
        ("random.Random", Cause.UNSEEDED_PYTHON),
        ("numpy.random.rand", Cause.UNSEEDED_NUMPY),
        ("numpy.empty", Cause.UNINITIALIZED),
        ("torch.set_num_threads", Cause.THREAD_COUNT),
        ("torch.Tensor.data_ptr", Cause.ID_ORDER),
        ("torch.Generator.seed", Cause.UNSEEDED_TORCH),
        ("multiprocessing.Queue.get", Cause.RACE),
        ("datetime.datetime.now", Cause.WALL_CLOCK),
        ("/dev/urandom", Cause.OS_ENTROPY),
        ("os.getpid", Cause.ENVIRONMENT),
    ],
)
def test_the_longest_beginning_of_a_draw_decides(op, cause):
    assert cause_of_draw(op) is cause


def test_the_likeliest_cause_of_an_intervention_is_the_first():
    assert causes_shown_by("clock") == (Cause.WALL_CLOCK, Cause.AUTOTUNING, Cause.THREAD_COUNT)
    assert causes_shown_by("threads") == (Cause.THREAD_COUNT, Cause.NONDETERMINISTIC_KERNEL)


def test_a_fact_of_the_machine_shows_no_intervention_by_its_cause_alone():
    assert Cause.ENVIRONMENT not in {
        cause for intervention in INTERVENTION_NAMES for cause in causes_acted_on_by(intervention)
    }
    assert causes_acted_on_by("threads") >= {Cause.RACE, Cause.THREAD_COUNT}


@pytest.mark.parametrize("known", ALL, ids=lambda known: known.cause)
def test_what_the_program_may_change_is_said_once_and_something_is_said_where_it_may_not(known):
    rules = [use.rule for use in known.patches]
    assert len(rules) == len(set(rules))
    assert rules, "a cause that no rule serves promises a change all the same"


def test_every_rule_serves_a_cause():
    assert {use.rule for known in ALL for use in known.patches} == set(PatchRule)


def test_rules_come_in_the_order_of_their_list():
    rules = specification_of(Cause.WALL_CLOCK).patch_rules(Reach.NEARBY, Reach.ANYWHERE)
    assert PatchRule.FIXED_TIME in rules
    assert list(rules) == sorted(rules, key=list(PatchRule).index)
    assert PatchRule.FIXED_TIME not in specification_of(Cause.WALL_CLOCK).patch_rules(Reach.ANYWHERE)


def test_a_member_is_its_text():
    assert json.dumps([Cause.RACE, OriginKind.RNG]) == '["race", "rng"]'
    assert f"{Cause.WALL_CLOCK}" == str(Cause.WALL_CLOCK) == "wall-clock"
    assert f"{OriginKind.CONTROL_FLOW}" == "control-flow"
    assert {Cause.RACE: 1}["race"] == 1
