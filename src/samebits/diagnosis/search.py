"""The smallest set of interventions with which the runs are identical."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Outcome = Literal["identical", "different", "failed", "no time"]
"""The result of runs with interventions; `failed`: not judged; `no time`: not made."""
InterventionSet = tuple[str, ...]


@dataclass(frozen=True)
class Trial:
    """Runs with some interventions.

    Args:
        interventions: their names, in the order in which they were requested.
        outcome: the result.
    """

    interventions: InterventionSet
    outcome: Outcome


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    Args:
        interventions: the smallest set that made the runs identical; None if none did, or time ran out first.
        trials: all trials, in order.
        minimal: whether the search tried every smaller set that it would try.
    """

    interventions: InterventionSet | None
    trials: tuple[Trial, ...]
    minimal: bool = True


def search(
    likely: Sequence[InterventionSet],
    every: InterventionSet,
    test: Callable[[InterventionSet], Outcome],
    needed: Callable[[InterventionSet], InterventionSet] = tuple,
) -> SearchResult:
    """Look for the smallest set of interventions with which runs are identical.

    The likely sets are tried first, in order, and the first that helps is made smaller. If none does, all
    interventions are tried at once, then their halves, in the manner of delta debugging (A. Zeller and
    R. Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE TSE 28(2), 2002). If all at once
    cannot be judged, each is tried alone.

    Args:
        likely: sets of interventions, the likeliest first.
        every: all interventions, the likeliest first.
        test: runs the script with some interventions; it is not called twice for the same set.
        needed: drops the interventions that follow from others of the set; sets with the same rest are the
            same set.
    """
    return _Search(test, needed).run(likely, every)


class _OutOfTime(Exception):  # noqa: N818 - it is not an error
    """No more runs can be made."""


class _Search:
    """One search and its trials so far."""

    def __init__(
        self, test: Callable[[InterventionSet], Outcome], needed: Callable[[InterventionSet], InterventionSet]
    ) -> None:
        self._test = test
        self._needed = needed
        self._tried: dict[frozenset[str], Trial] = {}
        self._best: InterventionSet | None = None

    def run(self, likely: Sequence[InterventionSet], every: InterventionSet) -> SearchResult:
        minimal = True
        try:
            start = self._first_that_helps([*likely, every])
            if start is None and every and self._outcome(every) == "failed":
                start = self._first_that_helps([(intervention,) for intervention in every])
            if start is not None:
                self._reduce(start)
        except _OutOfTime:
            minimal = False
        return SearchResult(self._best, tuple(self._tried.values()), minimal)

    def _first_that_helps(self, sets: Sequence[InterventionSet]) -> InterventionSet | None:
        return next((names for names in sets if names and self._helps(names)), None)

    def _helps(self, interventions: InterventionSet) -> bool:
        helped = self._outcome(interventions) == "identical"
        needed = self._needed(interventions)
        if helped and (self._best is None or len(needed) < len(self._best)):
            self._best = needed
        return helped

    def _outcome(self, interventions: InterventionSet) -> Outcome:
        needed = self._needed(interventions)
        key = frozenset(needed)
        known = self._tried.get(key)
        if known is None:
            outcome = self._test(needed)  # a set that helps is run again, and these are the ones returned
            if outcome == "no time":
                raise _OutOfTime
            known = self._tried[key] = Trial(needed, outcome)
        return known.outcome

    def _reduce(self, interventions: InterventionSet) -> None:
        """Remove what is not needed: halves first, then smaller and smaller parts."""
        parts = _parts(interventions)
        while len(interventions) > 1:
            smaller = self._smaller(interventions, min(parts, len(interventions)))
            if smaller is None:
                if parts >= len(interventions):
                    return
                parts *= 2
            else:
                halved = len(smaller) <= len(interventions) // 2
                interventions, parts = smaller, _parts(smaller) if halved else max(_parts(smaller), parts - 1)

    def _smaller(self, interventions: InterventionSet, parts: int) -> InterventionSet | None:
        """Return one of that many parts, or all but one of them, if that is enough."""
        bounds = [len(interventions) * i // parts for i in range(parts + 1)]
        chunks = [interventions[start:end] for start, end in itertools.pairwise(bounds)]
        # Each of two halves is the rest of the other.
        rests = [tuple(name for name in interventions if name not in chunk) for chunk in chunks]
        rests = rests if parts > 2 else []
        # If a single one is enough, it is also in the rest that another one leaves.
        return self._first_that_helps(rests if parts == len(interventions) > 2 else [*chunks, *rests])


def _parts(interventions: InterventionSet) -> int:
    """Return the number of parts into which a set is divided first."""
    return 3 if len(interventions) == 3 else 2
