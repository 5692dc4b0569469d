"""Which pins make the runs identical, and what that says of the findings."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samebits.causes import Cause
from samebits.determinism.pins import INTERVENTIONS, why_not, without_implied
from samebits.diagnosis.attribution import Confirmation, attributed, failed_note, unexplained, withdrawn
from samebits.diagnosis.candidates import every_intervention, likely_interventions, traces, unable
from samebits.diagnosis.search import search
from samebits.recording.notes import Note, NoteCode
from samebits.verification.chance import pairs_needed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from samebits.comparison.results import Comparison, Source
    from samebits.diagnosis.candidates import Trace
    from samebits.diagnosis.search import InterventionSet, Outcome, SearchResult
    from samebits.verification.fix_results import Fix
    from samebits.verification.interventions import Interventions


_WHICH, _BY_CHANCE = "which", "chance"  # of the pins matters; were the runs identical by


@dataclass(frozen=True)
class Terms:
    """On what terms pins are tried.

    Args:
        pinned: names of the pins that every run has already.
        same: how many of the compared runs were identical to the first before one differed.
        soon: moment of `time.monotonic` from which on only what is needed is run.
        sources: draws that differed before the runs parted.
        words: what the user's source names (`words_of`).
        try_patch: runs a patch for what pins have shown, given with their names.
    """

    pinned: InterventionSet = ()
    same: int = 0
    soon: float = math.inf
    sources: tuple[Source, ...] = ()
    words: frozenset[str] = frozenset()
    try_patch: Callable[[Comparison, InterventionSet], Fix | None] = lambda *_: None


class Diagnosis:
    """Tries pins, the likely ones first, until the runs are identical.

    Args:
        interventions: makes the runs.
        terms: what is known of the runs so far, and how much time there is.

    Attributes:
        confirmed: the smallest set of pins that made the runs identical, if one did, and not by chance.
        fix: what runs with a patch for these showed, if one was tried.
        so_far: what is known while a patch is tried.
        out_of_time: whether there was no time to try them all.
    """

    def __init__(self, interventions: Interventions, terms: Terms) -> None:
        self._interventions = interventions
        self._terms = terms
        self._soon = terms.soon
        self._same = terms.same
        self._possible = tuple(
            pin.name for pin in INTERVENTIONS if pin.name not in terms.pinned and not why_not(pin)
        )
        self._tried: dict[frozenset[str], Outcome] = {}
        self._fixes: dict[InterventionSet, Fix | None] = {}
        self.confirmed: Confirmation | None = None
        self.fix: Fix | None = None
        self.so_far: Comparison | None = None
        self.out_of_time = False

    def settle(self, comparison: Comparison, *, all_pins: bool) -> Comparison:
        """The comparison with what pins show of its findings.

        Args:
            comparison: with its findings.
            all_pins: try those too that nothing suggests.
        """
        found = traces(comparison.findings, self._terms.sources, self._terms.words)
        likely = self._able(likely_interventions(comparison.findings), found)
        every = every_intervention(self._possible, likely) if all_pins else ()
        likely += self._able((every,), found)  # before those that can show nothing
        causes = {finding.cause for finding in comparison.findings}
        result = search(likely, every, self._test, without_implied)
        while result.pins is not None:
            able = not unable(result.pins, found)
            if able and result.minimal and self._is_patched(comparison, result.pins, causes):
                return self._with_confirmed(comparison, self._once(result.pins))
            weak = any((found or {}).get(pin) == "source" for pin in result.pins)
            repeated, enough = self._repeated(result.pins, causes, weak=weak)
            if repeated.certain and unable(result.pins, found):
                return replace(comparison, findings=unexplained(comparison.findings, repeated))
            if repeated.certain:
                return self._shown(comparison, result, repeated, enough=enough)
            # They were identical by chance: more pairs are needed from now on, and other pins.
            self._tried[frozenset(result.pins)] = "different"
            self._same += repeated.identical
            result = search(likely, every, self._test, without_implied)
        self.out_of_time |= not result.minimal
        if not all_pins:
            return comparison
        note = failed_note(result)
        findings = withdrawn(comparison.findings, self._in_vain())
        return replace(comparison, findings=findings, notes=(*([note] if note else []), *comparison.notes))

    def _able(
        self, sets: tuple[InterventionSet, ...], found: Mapping[str, Trace] | None
    ) -> list[InterventionSet]:
        """Sets of pins that are possible, without those of which nothing shows that they can have acted."""
        kept = (tuple(pin for pin in pins if found is None or pin in found) for pins in sets)
        return [pins for pins in dict.fromkeys(kept) if pins and set(pins) <= set(self._possible)]

    def _in_vain(self) -> frozenset[str]:
        """InterventionSet that left the runs different where they had been different without them."""
        differed = (pins for pins, outcome in self._tried.items() if outcome == "different")
        return frozenset(pin for pins in differed for pin in pins if not self._interventions.moved(pins))

    def _shown(
        self, comparison: Comparison, result: SearchResult, repeated: Confirmation, *, enough: bool
    ) -> Comparison:
        """The comparison with pins that made the runs identical."""
        self.out_of_time |= not result.minimal or not enough
        if result.minimal and enough:
            return self._with_confirmed(comparison, repeated)
        return _with_doubt(comparison, repeated, _WHICH if enough else _BY_CHANCE)

    def _with_confirmed(self, comparison: Comparison, confirmed: Confirmation) -> Comparison:
        self.confirmed, self.fix = confirmed, self._fixes.get(confirmed.pins)
        return replace(comparison, findings=attributed(comparison.findings, confirmed))

    def _is_patched(self, comparison: Comparison, pins: InterventionSet, causes: set[Cause]) -> bool:
        """Whether runs with a patch for what pins showed once are identical; then no more pairs are made."""
        if pins not in self._fixes:
            once = self._once(pins)
            shown = replace(comparison, findings=attributed(comparison.findings, once))
            sure = len(pins) == 1 and pairs_needed(causes, self._same)[0] == 1
            self.confirmed = once if sure else None
            self.so_far = shown if sure else _with_doubt(comparison, once, _BY_CHANCE)
            self._fixes[pins] = self._terms.try_patch(shown, pins)
            self.confirmed = self.so_far = None
        fix = self._fixes[pins]
        return fix is not None and bool(fix.confirmed)

    def _once(self, pins: InterventionSet) -> Confirmation:
        return Confirmation(pins, 1, 1, self._interventions.max_steps)

    def _test(self, pins: InterventionSet) -> Outcome:
        known = self._tried.get(frozenset(pins))
        if known is None:
            known = self._tried[frozenset(pins)] = self._interventions.test(pins)
        return known

    def _repeated(
        self, pins: InterventionSet, causes: set[Cause], *, weak: bool
    ) -> tuple[Confirmation, bool]:
        """More pairs with these pins, as many as are needed or there is time for; whether they are enough."""
        causes = causes if len(pins) == 1 else {*causes, Cause.UNKNOWN}
        differed = 1 + sum(outcome == "different" for outcome in self._tried.values())
        # Beside the pair that was compared another one with nothing pinned differed: at op level, or again.
        least, most = pairs_needed(causes, self._same, differed + weak, weak=weak)
        done, steps = 1, self._interventions.max_steps
        while done < most and (done < least or time.monotonic() < self._soon):
            outcome = self._interventions.repeat(pins)
            if outcome == "no time":
                break
            if outcome != "identical":
                return Confirmation(pins, done, done + 1, steps), False
            done += 1
        return Confirmation(pins, done, done, steps), done >= least


def _with_doubt(comparison: Comparison, shown: Confirmation, open_question: str) -> Comparison:
    """The comparison with a note of pins that made runs identical, where it is not known what that means."""
    note = Note.of(NoteCode.PINS_IN_DOUBT, shown.line(), open_question)
    return replace(comparison, notes=(note, *comparison.notes))
