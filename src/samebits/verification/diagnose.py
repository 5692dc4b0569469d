"""Which pins make the runs identical, and what that says of the findings."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samebits.determinism.pins import PINS, why_not, without_implied
from samebits.diagnosis.attribution import Confirmation, attributed, failed_line
from samebits.diagnosis.candidates import every_pin, likely_pins
from samebits.diagnosis.search import search
from samebits.verification.chance import pairs_needed

if TYPE_CHECKING:
    from samebits.comparison.results import Comparison
    from samebits.diagnosis.search import Outcome, Pins, SearchResult
    from samebits.verification.interventions import Interventions


@dataclass(frozen=True)
class Terms:
    """On what terms pins are tried.

    Args:
        pinned: names of the pins that every run has already.
        same: how many of the compared runs were identical to the first before one differed.
        soon: moment of `time.monotonic` from which on only what is needed is run.
    """

    pinned: Pins = ()
    same: int = 0
    soon: float = math.inf


class Diagnosis:
    """Tries pins, the likely ones first, until the runs are identical.

    Args:
        interventions: makes the runs.
        terms: what is known of the runs so far, and how much time there is.

    Attributes:
        confirmed: the smallest set of pins that made the runs identical, if one did, and not by chance.
        out_of_time: whether there was no time to try them all.
    """

    def __init__(self, interventions: Interventions, terms: Terms) -> None:
        self._interventions = interventions
        self._soon = terms.soon
        self._same = terms.same
        self._possible = tuple(pin.name for pin in PINS if pin.name not in terms.pinned and not why_not(pin))
        self._tried: dict[frozenset[str], Outcome] = {}
        self.confirmed: Confirmation | None = None
        self.out_of_time = False

    def settle(self, comparison: Comparison, *, all_pins: bool) -> Comparison:
        """The comparison with what pins show of its findings.

        Args:
            comparison: with its findings.
            all_pins: try those too that nothing suggests.
        """
        likely = [pins for pins in likely_pins(comparison.findings) if set(pins) <= set(self._possible)]
        every = every_pin(self._possible, likely) if all_pins else ()
        causes = {finding.cause for finding in comparison.findings}
        result = search(likely, every, self._test, without_implied)
        while result.pins is not None:
            repeated, enough = self._repeated(result.pins, causes)
            if repeated.certain:
                return self._shown(comparison, result, repeated, enough=enough)
            # They were identical by chance: more pairs are needed from now on, and other pins.
            self._tried[frozenset(result.pins)] = "different"
            self._same += repeated.identical
            result = search(likely, every, self._test, without_implied)
        self.out_of_time |= not result.minimal
        line = failed_line(result) if all_pins else ""
        return replace(comparison, notes=(line, *comparison.notes)) if line else comparison

    def _shown(
        self, comparison: Comparison, result: SearchResult, repeated: Confirmation, *, enough: bool
    ) -> Comparison:
        """The comparison with pins that made the runs identical."""
        self.out_of_time |= not result.minimal or not enough
        if result.minimal and enough:
            self.confirmed = repeated
            return replace(comparison, findings=attributed(comparison.findings, repeated))
        why = "find out which of these matter" if enough else "see in more pairs whether that was chance"
        note = f"{repeated.line()}; there was no time to {why}"
        return replace(comparison, notes=(note, *comparison.notes))

    def _test(self, pins: Pins) -> Outcome:
        known = self._tried.get(frozenset(pins))
        if known is None:
            known = self._tried[frozenset(pins)] = self._interventions.test(pins)
        return known

    def _repeated(self, pins: Pins, causes: set[str]) -> tuple[Confirmation, bool]:
        """More pairs with these pins, as many as are needed or there is time for; whether they are enough."""
        causes = causes if len(pins) == 1 else {*causes, "unknown"}
        differed = 1 + sum(outcome == "different" for outcome in self._tried.values())
        least, most = pairs_needed(causes, self._same, differed)
        done, steps = 1, self._interventions.max_steps
        while done < most and (done < least or time.monotonic() < self._soon):
            outcome = self._interventions.repeat(pins)
            if outcome == "no time":
                break
            if outcome != "identical":
                return Confirmation(pins, done, done + 1, steps), False
            done += 1
        return Confirmation(pins, done, done, steps), done >= least
