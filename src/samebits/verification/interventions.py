"""Interventions: pairs of runs with one thing pinned, to see whether they part without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.recording.settings import RecordingSettings
from samebits.verification import fitness
from samebits.verification.judging import judged
from samebits.verification.series import BudgetSpent, Pair, Plan

if TYPE_CHECKING:
    from samebits.comparison.results import Comparison
    from samebits.diagnosis.search import InterventionSet, Outcome
    from samebits.verification.results import ScriptRun
    from samebits.verification.series import Series
    from samebits.verification.tools import Tools

MOST_PLAIN = 3
_MANY = 4  # pins are not listed by name from this number on
_SLOWEST, _SLACK_S = 3.0, 20.0  # so many times what the first run took, and so many seconds


@dataclass(frozen=True)
class Extent:
    """How far runs with pins go, and how they are compared.

    Args:
        role: which of the compared runs differed from the first; it is the second run of each pair.
        max_steps: steps after which they are stopped; None lets them go to their end.
        excused: names of state tensors that are left out.
        limit_s: seconds after which a run is ended: a pin may make a script wait for ever.
        least_steps: so many steps the runs have to make, to say anything of the difference.
        parting: where the runs differ first with nothing pinned (`parting_of`).
    """

    role: int
    max_steps: int | None = None
    excused: tuple[str, ...] = ()
    limit_s: float | None = None
    least_steps: int = 0
    parting: object = None


class Interventions:
    """Makes runs with pins and compares them; remembers what was made.

    Args:
        series: makes the runs.
        tools: compare them.
        extent: how far they go.
    """

    def __init__(self, series: Series, tools: Tools, extent: Extent) -> None:
        self._series = series
        self._tools = tools
        self._extent = extent
        self._first: dict[frozenset[str], ScriptRun] = {}
        self._made = 0
        self._moved: dict[frozenset[str], bool] = {}

    @property
    def max_steps(self) -> int | None:
        """After how many steps the runs are ended."""
        return self._extent.max_steps

    def test(self, pins: InterventionSet) -> Outcome:
        """Run a pair with these pins."""
        try:
            plans = self._plan(pins), self._plan(pins, second=True)
            first, second = self._series.both(*plans, unless=fitness.has_failed)
        except BudgetSpent:
            return "no time"
        self._first[frozenset(pins)] = first
        return "failed" if second is None else self._outcome(pins, Pair(first, second))

    def repeat(self, pins: InterventionSet) -> Outcome:
        """Compare one more run with the first one that had these pins, of which a pair was identical."""
        first = self._first[frozenset(pins)]
        try:
            second = self._series.run(self._plan(pins, first.record, second=True))
        except BudgetSpent:
            return "no time"
        return self._outcome(pins, Pair(first, second))

    def moved(self, pins: frozenset[str]) -> bool:
        """Whether runs with these pins differed elsewhere first than runs with nothing pinned."""
        return self._moved.get(pins, False)

    def differs_again(self) -> tuple[int, bool]:
        """How many pairs with nothing pinned were identical before one differed, and whether one did.

        What differed only once is gone with any pin.

        Raises:
            BudgetSpent: there was no time to see.
        """
        for number in range(MOST_PLAIN):
            outcome = self.repeat(()) if number else self.test(())
            if outcome == "no time":
                raise BudgetSpent
            if outcome != "identical":
                return number, outcome == "different"
        return MOST_PLAIN, False

    def _outcome(self, pins: InterventionSet, pair: Pair) -> Outcome:
        target = self._series.request.target
        if fitness.failure((pair.first, pair.second), target):
            return "failed"
        compared, _ = judged(pair, self._tools, target, self._extent.excused)
        if compared.verdict == "different":
            self._moved[frozenset(pins)] = parting_of(compared) != self._extent.parting
            return "different"
        reached = compared.verdict == "identical" and compared.steps >= self._extent.least_steps
        return "identical" if reached else "failed"

    def _plan(self, pins: InterventionSet, reference: str = "", *, second: bool = False) -> Plan:
        self._made += 1
        settings = RecordingSettings(
            record="", reference=reference, max_steps=self._extent.max_steps, excused=self._extent.excused
        )
        listed = " and ".join(pins) if len(pins) < _MANY else f"{len(pins)} things"
        words = f"pinning {listed}" if pins else "looking whether the difference comes back"
        return Plan(
            f"{'pinned' if pins else 'plain'}-{self._made:02}",
            words,
            settings,
            "intervene" if pins else "again",
            self._extent.role if second else 0,
            self._extent.limit_s,
            pins,
            more=0 if second else 1,
        )


def parting_of(comparison: Comparison) -> object:
    """Where runs differ first: the step, and what differs there."""
    first = next(iter(comparison.step_findings), None)
    return comparison.first_step, first and (first.kind, first.op, first.site, first.names)


def least_steps(comparison: Comparison) -> int:
    """How many steps identical runs have to make to say that a difference is gone: 0 for any number.

    Where the number of steps is what differs, or several threads make them, it says nothing.
    """
    first = comparison.first_step
    if first is None or comparison.several_threads:
        return 0
    return min(first + 1, comparison.steps)


def time_limit(seconds: float) -> float:
    """After how many seconds a run is ended that has something changed.

    Args:
        seconds: what the first run took, with nothing changed.
    """
    return _SLOWEST * seconds + _SLACK_S
