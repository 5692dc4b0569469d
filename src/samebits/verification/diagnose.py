"""Which pins make the runs identical, and what that says of the findings."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.determinism.pins import PINS, why_not
from samebits.diagnosis.attribution import Confirmation, attributed, failed_line
from samebits.diagnosis.candidates import every_pin, likely_pins
from samebits.diagnosis.search import search

if TYPE_CHECKING:
    from samebits.comparison.results import Comparison
    from samebits.diagnosis.search import Outcome, Pins
    from samebits.verification.interventions import Interventions

# Of these two runs are never alike by chance. Of other causes one pair says little: two are made at least.
_MANY_VALUES = frozenset({"unseeded-torch", "unseeded-numpy", "unseeded-python", "os-entropy", "wall-clock"})
_MOST_PAIRS = 3
_LEAST_PAIRS = 2


class Diagnosis:
    """Tries pins, the likely ones first, until the runs are identical.

    Args:
        interventions: makes the runs.
        pinned: names of the pins that every run has already.
        soon: moment of `time.monotonic` from which on only what is needed is run.

    Attributes:
        confirmed: the pins that made the runs identical, if any did.
        out_of_time: whether there was no time to try them all.
    """

    def __init__(self, interventions: Interventions, pinned: Pins = (), soon: float = math.inf) -> None:
        self._interventions = interventions
        self._soon = soon
        self._possible = tuple(pin.name for pin in PINS if pin.name not in pinned and not why_not(pin))
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
        result = search(likely, every, self._test)
        self.out_of_time |= not result.minimal
        if result.pins is None:
            line = failed_line(result) if all_pins else ""
            return replace(comparison, notes=(*comparison.notes, line)) if line else comparison
        repeated = self._repeated(comparison, result.pins)
        self.confirmed = replace(repeated, minimal=result.minimal)
        if not result.minimal:
            note = f"{repeated.line()}; there was no time to find out which of these matter"
            return replace(comparison, notes=(*comparison.notes, note))
        return replace(comparison, findings=attributed(comparison.findings, self.confirmed))

    def _test(self, pins: Pins) -> Outcome:
        known = self._tried.get(frozenset(pins))
        if known is None:
            known = self._tried[frozenset(pins)] = self._interventions.test(pins)
        return known

    def _repeated(self, comparison: Comparison, pins: Pins) -> Confirmation:
        """More pairs with these pins: those that are needed, and as many as there is time for."""
        causes = {finding.cause for finding in comparison.findings}
        certain = causes <= _MANY_VALUES and len(pins) == 1
        most = 1 if certain else _MOST_PAIRS
        done = 1
        while done < most and (done < _LEAST_PAIRS or time.monotonic() < self._soon):
            outcome = self._interventions.repeat(pins)
            if outcome == "no time":
                break
            if outcome != "identical":
                return Confirmation(pins, done, done + 1)
            done += 1
        return Confirmation(pins, done, done)
