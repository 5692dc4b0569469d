"""The pairs of runs that look for the operation."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from fake_runs import World, different
from finding_support import finding

from samebits.comparison.results import OriginSearch
from samebits.verification._localise import find_operation
from samebits.verification._state import Runner
from samebits.verification.plans import BudgetSpent, Pair
from samebits.verification.results import ScriptRun

OUTSIDE = OriginSearch((finding(step=5, op="aten::lift_fresh.default", origin_kind="outside"),))


@dataclass
class FewRuns:
    """**Fake:** a `Series` whose budget is spent after some pairs."""

    world: World
    left: int
    deadline: float = 12.5
    made: list = field(default_factory=list)

    def pair(self, name, _, settings, **__):
        """The next pair."""
        if len(self.made) == self.left:
            raise BudgetSpent
        self.made.append(name)
        self.world.made += [(f"{name}{letter}", settings) for letter in "ab"]
        runs = (
            ScriptRun("localise", f"{name}{letter}", 0, 1.0, info=self.world.info(name)) for letter in "ab"
        )
        return Pair(*runs)


def late() -> tuple[World, object]:
    """A difference at step 9, whose values entered before operations were recorded."""
    comparison = different(step=9)
    return World(verdicts={"op-1b": comparison}, origins={"op-1b": OUTSIDE}), comparison


def test_what_was_found_before_the_budget_was_spent_is_kept():
    """The pair that would look for what came before is not made any more."""
    world, comparison = late()
    found = find_operation(Runner(FewRuns(world, 1), world.tools()), comparison, 1)
    assert found.origins == OUTSIDE


def test_a_budget_that_is_spent_at_once_ends_the_search():
    world, comparison = late()
    with pytest.raises(BudgetSpent):
        find_operation(Runner(FewRuns(world, 0), world.tools()), comparison, 1)


def test_the_records_are_searched_until_the_budget_is_spent():
    world, comparison = late()
    find_operation(Runner(FewRuns(world, 1), world.tools()), comparison, 1)
    assert world.until == [12.5]
