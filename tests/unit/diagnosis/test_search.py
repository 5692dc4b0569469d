"""The search for the smallest set of interventions."""

from __future__ import annotations

import itertools

import pytest

from samebits.diagnosis.search import search

EVERY = tuple("abcdefghijklmnop")


class Script:
    """What happens with some interventions: identical if one of the sets that are needed is among them."""

    def __init__(self, *needed, failing=(), runs=1000):
        self.needed = [set(interventions) for interventions in needed]
        self.failing = set(failing)
        self.runs = runs
        self.asked = []

    def __call__(self, interventions):
        """Run with those interventions."""
        if len(self.asked) == self.runs:
            return "no time"
        self.asked.append(interventions)
        if self.failing & set(interventions):
            return "failed"
        return "identical" if any(need <= set(interventions) for need in self.needed) else "different"


def test_the_likeliest_alone_takes_one_trial():
    script = Script("c")
    found = search([("c",), ("a",)], EVERY, script)
    assert (found.interventions, script.asked) == (("c",), [("c",)])


@pytest.mark.parametrize("needed", [*EVERY, *map("".join, itertools.combinations(EVERY[::3], 2)), "aho"])
def test_the_smallest_set_is_found_among_all(needed):
    script = Script(needed)
    found = search([], EVERY, script)
    assert found.interventions is not None
    assert (set(found.interventions), found.minimal) == (set(needed), True)
    assert len(script.asked) == len({frozenset(interventions) for interventions in script.asked})


def test_one_of_sixteen_takes_few_trials():
    most = max(len(search([], EVERY, Script(intervention)).trials) for intervention in EVERY)
    assert most <= 9  # all, then at most both halves of 16, 8, 4 and 2


def test_a_likely_set_is_made_smaller():
    found = search([("a", "b", "c")], EVERY, Script("b"))
    assert found.interventions == ("b",)


def test_three_that_are_all_needed_take_one_trial_each_beside_the_first():
    """What is left without one of them says it: each alone is in one of these."""
    script = Script("abc")
    assert search([("a", "b", "c")], EVERY, script).interventions == ("a", "b", "c")
    assert script.asked == [("a", "b", "c"), ("b", "c"), ("a", "c"), ("a", "b")]


def test_sets_that_need_the_same_interventions_are_one_set():
    """With `b`, `a` is there in any case: what `b` showed alone holds for both."""
    script = Script("bd")

    def needed(interventions):
        return tuple(name for name in interventions if name != "a" or "b" not in interventions)

    found = search([("b",), ("a", "b")], ("a", "b", "d"), script, needed)
    assert found.interventions == ("b", "d")
    assert ("a", "b") not in script.asked


def test_nothing_helps():
    script = Script("z")
    found = search([("a",)], EVERY, script)
    assert (found.interventions, script.asked) == (None, [("a",), EVERY])


def test_each_is_tried_alone_where_all_at_once_cannot_be_judged():
    found = search([], EVERY, Script("g", failing="b"))
    assert found.interventions == ("g",)
    assert [trial.outcome for trial in found.trials[:3]] == ["failed", "different", "failed"]


def test_when_time_runs_out_the_best_so_far_is_given():
    found = search([], EVERY, Script("n", runs=3))
    assert found.interventions is not None
    assert "n" in found.interventions
    assert (len(found.interventions), found.minimal) == (8, False)
    assert search([], EVERY, Script("n", runs=0)).interventions is None


def test_without_any_intervention_nothing_is_tried():
    script = Script("a")
    assert search([], (), script).interventions is None
    assert script.asked == []


def test_what_helps_was_run_itself():
    """What follows repeats runs with the set that is given back: it must be one that was tried."""

    def needed(interventions):
        return tuple(name for name in interventions if name != "a" or "b" not in interventions)

    script = Script("bd")
    found = search([], ("a", "b", "c", "d"), script, needed)
    assert (found.interventions, found.minimal) == (("b", "d"), True)
    assert found.interventions in script.asked
    script = Script("bcd", runs=1)
    found = search([], ("a", "b", "c", "d"), script, needed)
    assert (found.interventions, found.minimal) == (("b", "c", "d"), False)
    assert found.interventions in script.asked
