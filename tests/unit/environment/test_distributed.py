"""Which rank a process is, from the variables that launchers set."""

from __future__ import annotations

import pytest

from samebits.environment.distributed import RankFacts, rank_facts

LAUNCHED = {
    "RANK": "1",
    "WORLD_SIZE": "2",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "TORCHELASTIC_RUN_ID": "none",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "MASTER_ADDR": "localhost",
    "MASTER_PORT": "29500",
}


def test_what_the_elastic_launcher_says():
    """Rank, size and restarts are those of the variables."""
    facts = rank_facts({**LAUNCHED, "TORCHELASTIC_RESTART_COUNT": "3"}, parent=1)

    assert facts is not None
    assert (facts.rank, facts.world_size, facts.local_rank, facts.restart) == (1, 2, 1, 3)


def test_a_launch_is_named_alike_by_its_ranks_only():
    """Another parent, another restart or another run id is another launch; another rank is not."""
    name = rank_facts(LAUNCHED, parent=1).launch

    assert rank_facts({**LAUNCHED, "RANK": "0", "LOCAL_RANK": "0"}, parent=1).launch == name
    others = [
        rank_facts(LAUNCHED, parent=2),
        rank_facts({**LAUNCHED, "TORCHELASTIC_RESTART_COUNT": "1"}, parent=1),
        rank_facts({**LAUNCHED, "TORCHELASTIC_RUN_ID": "x"}, parent=1),
    ]
    assert name not in {facts.launch for facts in others}


def test_ranks_on_several_machines_have_other_parents():
    """What names the launch then is what their variables have in common."""
    spread = {**LAUNCHED, "LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0"}

    assert rank_facts(spread, parent=1).launch == rank_facts({**spread, "RANK": "0"}, parent=2).launch


@pytest.mark.parametrize(
    "change",
    [
        {"RANK": "gold"}, {"RANK": "-1"}, {"RANK": "2"}, {"RANK": ""}, {"WORLD_SIZE": "1", "RANK": "0"},
        {"WORLD_SIZE": "many"}, {"RANK": "9" * 5000}, {"RANK": "\u0661"},
    ],
)  # fmt: skip
def test_what_is_no_rank(change):
    """Variables of other programs, and a launch of one process, make no rank."""
    assert rank_facts({**LAUNCHED, **change}) is None


def test_facts_of_a_record_are_not_trusted():
    """Only what `to_dict` gives is read."""
    facts = RankFacts(0, 2, 0, 0, "x")

    assert RankFacts.from_dict(facts.to_dict()) == facts
    for wrong in (None, 3, {}, {**facts.to_dict(), "rank": 5}, {**facts.to_dict(), "rank": "0"},
                  {**facts.to_dict(), "more": 1}, {**facts.to_dict(), "world_size": 1 << 60}):  # fmt: skip
        assert RankFacts.from_dict(wrong) is None
