"""When a pair with something pinned says anything, and how many of them it takes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from fake_runs import IDENTICAL, SITE, World, different, finding, request
from sentence_support import confirmed_by, evidence_of, notes_of, text_reason

from samebits.comparison.results import Comparison, OriginSearch, Source
from samebits.verification import verify
from samebits.verification._pair_limits import MOST_PAIRS, pairs_needed


@pytest.fixture(autouse=True)
def script(tmp_path, monkeypatch):
    """There is a train.py, which is never run."""
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)


def world(**fields):
    """Runs that differ in step 2 unless the clock is frozen, which the evidence suggests."""
    found = finding(cause="wall-clock", origin_kind="outside")
    made = World(origins={"op-1b": OriginSearch((found,))}, helps=({"clock"},), **fields)
    made.verdicts = {"run-2": different(), "op-1b": different(), **made.verdicts}
    return made


def explained(tmp_path, made, **fields):
    """The comparison."""
    return verify(request(tmp_path, **fields), tools=made.tools()).comparison


def says_nothing(comparison):
    """Whether no cause was shown, and no intervention is said to have failed."""
    shown = confirmed_by(comparison.findings[0]) or comparison.findings[0].remedy.confirmed
    return not shown and not any("still differed" in note for note in notes_of(comparison))


def every_pair(made, comparison):
    """All pairs with interventions give this."""
    made.verdicts |= {f"pinned-{number:02}": comparison for number in range(1, 200)}
    return made


def test_the_pair_is_otherwise_enough(tmp_path):
    comparison = explained(tmp_path, world())
    assert "with the clock frozen, 1 pair of runs was identical" in confirmed_by(comparison.findings[0])


def test_a_pair_that_ended_before_the_difference_says_nothing(tmp_path):
    made = every_pair(world(), replace(IDENTICAL, steps=2))
    assert says_nothing(explained(tmp_path, made))
    made = every_pair(world(), replace(IDENTICAL, steps=3))
    assert not says_nothing(explained(tmp_path / "3", made))


def test_a_pair_that_could_not_be_judged_says_nothing(tmp_path):
    made = every_pair(world(), Comparison("not_judged", text_reason("the state could not be recorded"), 5))
    assert says_nothing(explained(tmp_path, made))


def test_a_pair_that_ended_with_different_statuses_says_nothing(tmp_path):
    made = world(statuses={f"pinned-{number:02}": 3 for number in range(2, 200, 2)})
    assert not confirmed_by(explained(tmp_path, made).findings[0])


def test_a_pair_of_which_a_run_was_ended_says_nothing(tmp_path):
    made = world(slow={f"pinned-{number:02}" for number in range(1, 200)})
    assert says_nothing(explained(tmp_path, made))


def test_what_differs_rarely_takes_more_pairs(tmp_path):
    made = world()
    made.verdicts = {"run-4": different(), "op-1b": different()}
    comparison = explained(tmp_path, made, runs=5)
    assert "8 of 8 pairs" in confirmed_by(comparison.findings[0])
    assert made.names.count("pinned-09") == 1


def test_how_many_pairs_leave_little_to_chance():
    """Of pairs of which one in two is identical anyway, five are so by chance once in 32 times."""
    assert pairs_needed({"unseeded-numpy"}) == (1, 1)
    assert pairs_needed({"unknown"}) == (2, 3)
    assert pairs_needed({"race"}, same=1, different=1) == (5, 5)
    assert pairs_needed({"unseeded-numpy"}, same=2, different=1) == (8, 8)
    assert pairs_needed({"race"}, same=1, different=30) == (2, 3)
    assert pairs_needed({"unknown"}, different=2, weak=True) == (5, 5)
    assert pairs_needed({"unknown"}, different=6, weak=True) == (3, 3)
    assert pairs_needed({"race"}, same=1000, different=1) == (MOST_PAIRS, MOST_PAIRS)


def test_one_pair_that_may_be_chance_shows_nothing_when_the_time_is_over(tmp_path, monkeypatch):
    made = world()
    made.origins["op-1b"] = OriginSearch((finding(cause="race"),))
    made.helps = ({"completion"},)
    moment = [0.0]
    monkeypatch.setattr("samebits.verification.series.time.monotonic", lambda: moment[0])
    made.on_run = lambda name: moment.__setitem__(0, 1000.0 if name == "pinned-02" else moment[0])
    comparison = explained(tmp_path, made, budget=100.0)
    assert confirmed_by(comparison.findings[0]) == ""
    assert any(
        ", 1 pair of runs was identical" in note and "chance" in note for note in notes_of(comparison)
    ), notes_of(comparison)


SCRIPT = "import torch, time\nend = time.monotonic() + 3\nprint(torch.ones(3))\n"


def open_world(**fields):
    """The script above, whose cause nothing shows."""
    made = world(**fields)
    made.origins["op-1b"] = OriginSearch((finding(cause="unknown", origin_kind="control-flow"),))
    Path("train.py").write_text(SCRIPT)
    return made


def test_an_intervention_that_the_script_gives_nothing_to_do_shows_no_cause(tmp_path):
    """There is no set in it, and no hash: with addresses fixed its runs were identical by chance."""
    made = open_world()
    made.helps = ({"layout"},)
    (found,) = explained(tmp_path, made).findings
    assert (found.cause, confirmed_by(found)) == ("unknown", "")
    assert any("with addresses fixed" in line and "nothing" in line for line in evidence_of(found))


def test_an_intervention_that_only_the_source_suggests_takes_more_pairs(tmp_path):
    made = open_world()
    (found,) = explained(tmp_path, made).findings
    assert found.cause == "wall-clock"
    (pairs,) = re.findall(r"(\d+) of \1 pairs", confirmed_by(found))
    assert 1 < int(pairs) <= 5  # one is enough where a draw of the clock differed


def test_a_cause_whose_intervention_did_not_help_is_withdrawn(tmp_path):
    made = world()
    source = Source("time.time", SITE, "wall-clock")
    made.origins["op-1b"] = OriginSearch(
        (finding(cause="wall-clock", origin_kind="outside", sources=(source,)),)
    )
    made.helps = ()
    every_pair(made, different())
    (found,) = explained(tmp_path, made).findings
    assert found.cause == "unknown"
    assert any("with the clock frozen the runs still differed" in line for line in evidence_of(found))


def test_it_stays_where_the_runs_then_differ_elsewhere(tmp_path):
    made = world()
    source = Source("time.time", SITE, "wall-clock")
    made.origins["op-1b"] = OriginSearch(
        (finding(cause="wall-clock", origin_kind="outside", sources=(source,)),)
    )
    made.helps = ()
    every_pair(made, different(4))
    (found,) = explained(tmp_path, made).findings
    assert found.cause == "wall-clock"


def test_runs_that_were_cut_short_say_how_far_they_went(tmp_path):
    comparison = explained(tmp_path, world(seconds=100.0))
    assert confirmed_by(comparison.findings[0]) == (
        "with the clock frozen, 1 pair of runs was identical in its first 5 steps"
    )
