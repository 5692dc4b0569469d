"""The stages that show a cause: pairs of runs with something pinned, until they are identical."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samebits.causes import Cause
from samebits.comparison.results import Confirmation
from samebits.diagnosis.attribution import attributed, failed_note, unexplained, withdrawn
from samebits.diagnosis.candidates import every_intervention, likely_interventions, traces, unable, words_of
from samebits.diagnosis.search import search
from samebits.interventions import INTERVENTIONS, why_not, without_implied
from samebits.recording.settings import RecordingSettings
from samebits.records.notes import Note, NoteCode
from samebits.verification import preconditions
from samebits.verification._fix import LITTLE, Aim, Effort
from samebits.verification._judge import judged
from samebits.verification._remedy import try_patch
from samebits.verification._trials import last_step, least_steps, pairs_needed, time_limit
from samebits.verification._user_files import read_program
from samebits.verification.results import Purpose
from samebits.verification.series import BudgetSpent, Pair, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from samebits.comparison.results import Comparison, Finding
    from samebits.diagnosis.candidates import Trace
    from samebits.diagnosis.search import InterventionSet, Outcome, SearchResult
    from samebits.verification._state import Runner, State, States
    from samebits.verification.results import ScriptRun

MOST_PLAIN = 3
_MANY = 4  # pins are not listed by name from this number on
_WHICH, _BY_CHANCE = "which", "chance"  # of the interventions matters; were the runs identical by
_SOON_RUNS, _SOON_S = 3.0, 4.0  # after so many first runs and seconds, only pairs that are needed are made


@dataclass(frozen=True)
class Terms:
    """On what terms pins are tried, which is the same for all of them.

    Args:
        role: which of the compared runs differed from the first; it is the second run of each pair.
        max_steps: steps after which runs are stopped; None lets them go to their end.
        excluded: names of state tensors that are left out.
        limit_s: seconds after which a run is ended: a pin may make a script wait for ever.
        least_steps: so many steps the runs have to make, to say anything of the difference.
        divergence: where the runs differ first with nothing pinned (`divergence_of`).
        soon: moment of `time.monotonic` from which on only what is needed is run.
        words: what the user's source names (`words_of`).
    """

    role: int
    max_steps: int | None = None
    excluded: tuple[str, ...] = ()
    limit_s: float | None = None
    least_steps: int = 0
    divergence: object = None
    soon: float = math.inf
    words: frozenset[str] = frozenset()


def terms_of(state: State, runner: Runner, begun: float) -> Terms:
    """On what terms pins are tried.

    Args:
        state: with the origins, as far as they are known.
        runner: makes the runs.
        begun: moment of `time.monotonic` at which the search for the cause began.
    """
    seconds = state.compared.first.seconds
    return Terms(
        state.role,
        max_steps=last_step(state),
        excluded=state.excluded,
        limit_s=time_limit(seconds),
        least_steps=least_steps(state.comparison),
        divergence=divergence_of(state.comparison),
        soon=begun + _SOON_RUNS * seconds + _SOON_S,
        words=words_of(read_program(runner.request.target, state.comparison.findings)),
    )


class PinnedRuns:
    """Makes pairs of runs with pins and compares them; remembers what came of them.

    Args:
        runner: makes the runs and compares them.
        terms: how far they go, and how they are compared.
    """

    def __init__(self, runner: Runner, terms: Terms) -> None:
        self.terms = terms
        self._runner = runner
        self._outcomes: dict[frozenset[str], Outcome] = {}
        self._first: dict[frozenset[str], ScriptRun] = {}
        self._diverged_elsewhere: dict[frozenset[str], bool] = {}
        self._made = 0

    def test(self, pins: InterventionSet) -> Outcome:
        """The outcome of a pair with these pins, which is made if there is none yet."""
        known = self._outcomes.get(frozenset(pins))
        if known is None:
            known = self._outcomes[frozenset(pins)] = self._pair(pins)
        return known

    def repeat(self, pins: InterventionSet) -> Outcome:
        """Compare one more run with the first one that had these pins, of which a pair was identical."""
        first = self._first[frozenset(pins)]
        try:
            second = self._runner.series.run(self._plan(pins, first.record, second=True))
        except BudgetSpent:
            return "no time"
        return self._outcome(pins, Pair(first, second))

    def call_chance(self, pins: InterventionSet) -> None:
        """From now on the pair with these pins that was identical counts as one that differed."""
        self._outcomes[frozenset(pins)] = "different"

    def n_different(self) -> int:
        """With how many sets of pins the runs differed."""
        return sum(outcome == "different" for outcome in self._outcomes.values())

    def in_vain(self) -> frozenset[str]:
        """InterventionSet that left the runs different where they had been different without them."""
        differed = (pins for pins, outcome in self._outcomes.items() if outcome == "different")
        kept = (pins for pins in differed if not self._diverged_elsewhere.get(pins, False))
        return frozenset(pin for pins in kept for pin in pins)

    def unpinned(self) -> tuple[int, bool]:
        """How many pairs with nothing pinned were identical before one differed, and whether one did.

        What differed only once is gone with any pin.

        Raises:
            BudgetSpent: there was no time to see.
        """
        for number in range(MOST_PLAIN):
            outcome = self.repeat(()) if number else self._pair(())
            if outcome == "no time":
                raise BudgetSpent
            if outcome != "identical":
                return number, outcome == "different"
        return MOST_PLAIN, False

    def _pair(self, pins: InterventionSet) -> Outcome:
        try:
            plans = self._plan(pins), self._plan(pins, second=True)
            first, second = self._runner.series.both(*plans, unless=preconditions.has_failed)
        except BudgetSpent:
            return "no time"
        self._first[frozenset(pins)] = first
        return "failed" if second is None else self._outcome(pins, Pair(first, second))

    def _outcome(self, pins: InterventionSet, pair: Pair) -> Outcome:
        target = self._runner.request.target
        if preconditions.failure((pair.first, pair.second), target):
            return "failed"
        comparison, _ = judged(pair, self._runner.tools, target, self.terms.excluded)
        if comparison.verdict == "different":
            elsewhere = divergence_of(comparison) != self.terms.divergence
            self._diverged_elsewhere[frozenset(pins)] = elsewhere
            return "different"
        reached = comparison.verdict == "identical" and comparison.steps >= self.terms.least_steps
        return "identical" if reached else "failed"

    def _plan(self, pins: InterventionSet, reference: str = "", *, second: bool = False) -> Plan:
        self._made += 1
        terms = self.terms
        settings = RecordingSettings(
            record="", reference=reference, max_steps=terms.max_steps, excluded=terms.excluded
        )
        listed = " and ".join(pins) if len(pins) < _MANY else f"{len(pins)} things"
        words = f"pinning {listed}" if pins else "looking whether the difference comes back"
        return Plan(
            f"{'pinned' if pins else 'plain'}-{self._made:02}",
            words,
            settings,
            Purpose.INTERVENE if pins else Purpose.AGAIN,
            terms.role if second else 0,
            terms.limit_s,
            pins,
            more=0 if second else 1,
        )


def divergence_of(comparison: Comparison) -> object:
    """Where runs differ first: the step, and what differs there."""
    first = next(iter(comparison.step_findings), None)
    return comparison.first_step, first and (
        first.origin.kind,
        first.origin.op,
        first.origin.site,
        first.origin.names,
    )


def look_again(state: State, runner: Runner, pinned: PinnedRuns) -> State:
    """See whether the difference comes back with nothing changed, where no further pair has shown that."""
    state = replace(state, n_identical=state.role - 1)
    again = state.localisation is not None and state.localisation.pair is not None
    if again or not (runner.request.interventions or runner.request.fix):
        return state
    n_identical, seen_again = pinned.unpinned()
    state = replace(state, n_identical=state.n_identical + n_identical, seen_again=seen_again)
    return state if seen_again else state.noted(Note.of(NoteCode.DIFFERENCE_NOT_SEEN_AGAIN))


def intervene(state: State, runner: Runner, pinned: PinnedRuns, *, all_pins: bool = False) -> States:
    """Try pins, the likely ones first, until the runs are identical, and say what that shows of the findings.

    Args:
        state: with its findings.
        runner: makes the runs.
        pinned: makes those with pins.
        all_pins: try those too that nothing suggests.

    Yields:
        what is known while a patch for what some pins showed is tried, and afterwards.

    Returns:
        what is known in the end.
    """
    if not (runner.request.interventions and state.seen_again):
        return state
    findings = state.comparison.findings
    acting = traces(findings, state.drawn, pinned.terms.words)
    possible = _possible(runner.request.pins)
    likely = _able(likely_interventions(findings), possible, acting)
    every = every_intervention(possible, likely) if all_pins else ()
    likely += _able((every,), possible, acting)  # before those that can show nothing
    while True:
        result = search(likely, every, pinned.test, without_implied)
        if result.pins is None:
            return _without_success(state, result, pinned, all_pins=all_pins)
        if result.minimal and not unable(result.pins, acting):
            state = yield from _patched(state, runner, pinned, result.pins)
            if state.confirmed is not None:
                return state
        weak = any((acting or {}).get(pin) == "source" for pin in result.pins)
        confirmation, enough = _repeated(state, pinned, result.pins, weak=weak)
        if confirmation.certain and unable(result.pins, acting):
            return _with_findings(state, unexplained(findings, confirmation))
        if confirmation.certain:
            return _shown(state, result, confirmation, enough=enough)
        # They were identical by chance: more pairs are needed from now on, and other pins.
        pinned.call_chance(result.pins)
        state = replace(state, n_identical=state.n_identical + confirmation.identical)


def _possible(given: Sequence[str]) -> InterventionSet:
    """Names of the pins that can be had here, and that not every run has already."""
    return tuple(pin.name for pin in INTERVENTIONS if pin.name not in given and not why_not(pin))


def _able(
    sets: Sequence[InterventionSet], possible: InterventionSet, acting: Mapping[str, Trace] | None
) -> list[InterventionSet]:
    """Sets of pins that are possible, without those of which nothing shows that they can have acted."""
    kept = (tuple(pin for pin in pins if acting is None or pin in acting) for pins in sets)
    return [pins for pins in dict.fromkeys(kept) if pins and set(pins) <= set(possible)]


def _patched(state: State, runner: Runner, pinned: PinnedRuns, pins: InterventionSet) -> States:
    """Try a patch for what pins showed once; where runs with it are identical, no more pairs are made.

    Yields:
        what is known while it is tried, and the state as it was.

    Returns:
        the state in which the pins are confirmed, or as it was.
    """
    once, causes = Confirmation(pins, 1, 1, pinned.terms.max_steps), _causes(state)
    shown = _with_findings(state, attributed(state.comparison.findings, once))
    if pins not in state.trials:
        sure = len(pins) == 1 and pairs_needed(causes, state.n_identical)[0] == 1
        yield replace(shown, confirmed=once) if sure else _with_doubt(state, once, _BY_CHANCE)
        aim = Aim(shown.comparison, pins, state.excluded, shown=True)
        trial = try_patch(runner, aim, Effort(LITTLE, LITTLE, pinned.terms.max_steps))
        yield (state := replace(state, trials={**state.trials, pins: trial}))
    trial = state.trials[pins]
    is_confirmed = trial is not None and bool(trial.confirmed)
    return _confirmed(state, once) if is_confirmed else state


def _repeated(
    state: State, pinned: PinnedRuns, pins: InterventionSet, *, weak: bool
) -> tuple[Confirmation, bool]:
    """More pairs with these pins, as many as are needed or there is time for; whether they are enough."""
    causes = _causes(state) if len(pins) == 1 else {*_causes(state), Cause.UNKNOWN}
    # Beside the pair that was compared another one with nothing pinned differed: at op level, or again.
    differed = 1 + pinned.n_different() + weak
    least, most = pairs_needed(causes, state.n_identical, differed, weak=weak)
    done, steps = 1, pinned.terms.max_steps
    while done < most and (done < least or time.monotonic() < pinned.terms.soon):
        outcome = pinned.repeat(pins)
        if outcome == "no time":
            break
        if outcome != "identical":
            return Confirmation(pins, done, done + 1, steps), False
        done += 1
    return Confirmation(pins, done, done, steps), done >= least


def _causes(state: State) -> set[Cause]:
    return {finding.cause for finding in state.comparison.findings}


def _shown(state: State, result: SearchResult, confirmation: Confirmation, *, enough: bool) -> State:
    """The state with pins that made the runs identical."""
    if result.minimal and enough:
        return _confirmed(state, confirmation)
    doubted = _with_doubt(state, confirmation, _WHICH if enough else _BY_CHANCE)
    return replace(doubted, out_of_time=True)


def _confirmed(state: State, confirmation: Confirmation) -> State:
    state = _with_findings(state, attributed(state.comparison.findings, confirmation))
    return replace(state, confirmed=confirmation, trial=state.trials.get(confirmation.interventions))


def _with_doubt(state: State, shown: Confirmation, open_question: str) -> State:
    """The state with a note of pins that made runs identical, where it is not known what that means."""
    return state.noted(Note.of(NoteCode.PINS_IN_DOUBT, shown, open_question))


def _without_success(state: State, result: SearchResult, pinned: PinnedRuns, *, all_pins: bool) -> State:
    """The state where no pins made the runs identical."""
    state = replace(state, out_of_time=state.out_of_time or not result.minimal)
    if not all_pins:
        return state
    note = failed_note(result)
    state = _with_findings(state, withdrawn(state.comparison.findings, pinned.in_vain()))
    return state.noted(note) if note else state


def _with_findings(state: State, findings: Sequence[Finding]) -> State:
    return replace(state, comparison=replace(state.comparison, findings=tuple(findings)))
