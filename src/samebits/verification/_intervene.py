"""The stages that show a cause: pairs of runs with interventions, until a pair is identical."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samebits.causes import Cause
from samebits.comparison.results import Confirmation
from samebits.diagnosis.attribution import attributed, failed_note, unexplained, withdrawn
from samebits.diagnosis.candidates import every_intervention, likely_interventions, names_used, traces, unable
from samebits.diagnosis.search import search
from samebits.environment.snapshot import fact_at
from samebits.interventions import INTERVENTIONS, why_not, without_implied
from samebits.recording.settings import RecordingSettings
from samebits.records.notes import Note, NoteCode
from samebits.verification import preconditions
from samebits.verification._fix import FEW, Aim, Effort
from samebits.verification._judge import judged
from samebits.verification._pair_limits import last_step, least_steps, pairs_needed, time_limit
from samebits.verification._remedy import try_patch
from samebits.verification.plans import BudgetSpent, Pair, Plan
from samebits.verification.results import Purpose
from samebits.verification.user_files import read_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from samebits.comparison.results import Comparison, Finding
    from samebits.diagnosis.candidates import Trace
    from samebits.diagnosis.search import InterventionSet, Outcome, SearchResult
    from samebits.verification._state import Runner, State, States
    from samebits.verification.results import ScriptRun

MOST_PLAIN = 3
_MANY = 4  # from this many on, interventions are counted rather than named
_WHICH, _BY_CHANCE = "which", "chance"  # open: which of them matters; whether it was chance
_SOON_RUNS, _SOON_S = 3.0, 4.0  # first runs plus seconds after which only necessary pairs are made


@dataclass(frozen=True)
class Terms:
    """The terms on which all interventions are tried.

    Args:
        role: which of the compared runs differed from the first; it is the second run of each pair.
        max_steps: steps after which runs are stopped; None lets them go to their end.
        excluded: names of state tensors that are left out.
        limit_s: seconds after which a run is ended: an intervention may make a script wait for ever.
        least_steps: the number of steps that the runs have to make to say anything about the difference.
        divergence: where the runs differ first with nothing pinned (`divergence_of`).
        soon: moment of `time.monotonic` from which on only what is needed is run.
        names: the names that the user's source uses (`names_used`).
    """

    role: int
    max_steps: int | None = None
    excluded: tuple[str, ...] = ()
    limit_s: float | None = None
    least_steps: int = 0
    divergence: object = None
    soon: float = math.inf
    names: frozenset[str] = frozenset()


def terms_of(state: State, runner: Runner, begun: float) -> Terms:
    """Return the terms on which interventions are tried.

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
        names=names_used(read_program(runner.request.target, state.comparison.findings)),
    )


class InterventionPairs:
    """Makes pairs of runs with interventions, compares them, and remembers the outcomes.

    Args:
        runner: makes the runs and compares them.
        terms: how far they go, and how they are compared.
    """

    def __init__(self, runner: Runner, terms: Terms) -> None:
        self.terms = terms
        self._runner = runner
        self._outcomes: dict[frozenset[str], Outcome] = {}
        self._first_runs: dict[frozenset[str], ScriptRun] = {}
        self._diverged_elsewhere: dict[frozenset[str], bool] = {}
        self._made = 0

    def test(self, interventions: InterventionSet) -> Outcome:
        """Return the outcome of a pair with these interventions; make the pair if there is none yet."""
        known = self._outcomes.get(frozenset(interventions))
        if known is None:
            known = self._outcomes[frozenset(interventions)] = self._pair(interventions)
        return known

    def repeat(self, interventions: InterventionSet) -> Outcome:
        """Compare one more run with these interventions with the first run of their identical pair."""
        first = self._first_runs[frozenset(interventions)]
        try:
            second = self._runner.series.run(self._plan(interventions, first.record, second=True))
        except BudgetSpent:
            return "no time"
        return self._outcome(interventions, Pair(first, second))

    def call_chance(self, interventions: InterventionSet) -> None:
        """From now on, count the identical pair with these interventions as one that differed."""
        self._outcomes[frozenset(interventions)] = "different"

    def n_different(self) -> int:
        """Return the number of sets of interventions with which the runs differed."""
        return sum(outcome == "different" for outcome in self._outcomes.values())

    def in_vain(self) -> frozenset[str]:
        """Return the interventions that did not help: runs diverged at the same point as without them."""
        differed = (names for names, outcome in self._outcomes.items() if outcome == "different")
        in_vain = (names for names in differed if not self._diverged_elsewhere.get(names, False))
        return frozenset(itertools.chain.from_iterable(in_vain))

    def without_any(self) -> tuple[int, bool]:
        """Count identical pairs without interventions until one differs, and tell whether one did.

        A difference that appeared only once is gone with any intervention.

        Raises:
            BudgetSpent: there was not enough time.
        """
        for number in range(MOST_PLAIN):
            outcome = self.repeat(()) if number else self._pair(())
            if outcome == "no time":
                raise BudgetSpent
            if outcome != "identical":
                return number, outcome == "different"
        return MOST_PLAIN, False

    def _pair(self, interventions: InterventionSet) -> Outcome:
        try:
            plans = self._plan(interventions), self._plan(interventions, second=True)
            first, second = self._runner.series.both(*plans, unless=preconditions.has_failed)
        except BudgetSpent:
            return "no time"
        self._first_runs[frozenset(interventions)] = first
        return "failed" if second is None else self._outcome(interventions, Pair(first, second))

    def _outcome(self, interventions: InterventionSet, pair: Pair) -> Outcome:
        target = self._runner.request.target
        if preconditions.failure((pair.first, pair.second), target):
            return "failed"
        comparison, _ = judged(pair, self._runner.tools, target, self.terms.excluded)
        if comparison.verdict == "different":
            elsewhere = divergence_of(comparison) != self.terms.divergence
            self._diverged_elsewhere[frozenset(interventions)] = elsewhere
            return "different"
        reached = comparison.verdict == "identical" and comparison.steps >= self.terms.least_steps
        return "identical" if reached else "failed"

    def _plan(self, interventions: InterventionSet, reference: str = "", *, second: bool = False) -> Plan:
        self._made += 1
        terms = self.terms
        settings = RecordingSettings(
            record="", reference=reference, max_steps=terms.max_steps, excluded=terms.excluded
        )
        listed = " and ".join(interventions) if len(interventions) < _MANY else f"{len(interventions)} things"
        description = f"pinning {listed}" if interventions else "looking whether the difference comes back"
        return Plan(
            f"{'pinned' if interventions else 'plain'}-{self._made:02}",
            description,
            settings,
            Purpose.INTERVENE if interventions else Purpose.AGAIN,
            terms.role if second else 0,
            terms.limit_s,
            interventions,
            more=0 if second else 1,
        )


def divergence_of(comparison: Comparison) -> object:
    """Return the point where runs differ first: the step, and what differs there."""
    first = next(iter(comparison.step_findings), None)
    return comparison.first_step, first and (
        first.origin.kind,
        first.origin.op,
        first.origin.site,
        first.origin.names,
    )


def check_recurrence(state: State, runner: Runner, pairs: InterventionPairs) -> State:
    """Check whether the difference recurs with nothing changed, unless another pair has shown that."""
    state = replace(state, n_identical=state.role - 1)
    again = state.localisation is not None and state.localisation.pair is not None
    if again or not (runner.request.intervene or runner.request.fix):
        return state
    n_identical, seen_again = pairs.without_any()
    state = replace(state, n_identical=state.n_identical + n_identical, seen_again=seen_again)
    return state if seen_again else state.noted(Note.of(NoteCode.DIFFERENCE_NOT_SEEN_AGAIN))


def intervene(state: State, runner: Runner, pairs: InterventionPairs, *, try_all: bool = False) -> States:
    """Try interventions, the likely ones first, until the runs are identical; attribute the findings.

    Args:
        state: with its findings.
        runner: makes the runs.
        pairs: makes those with interventions.
        try_all: also try those that nothing suggests.

    Yields:
        what is known while a patch for what some interventions showed is tried, and afterwards.

    Returns:
        what is known in the end.
    """
    if not (runner.request.intervene and state.seen_again):
        return state
    findings = state.comparison.findings
    acting = traces(findings, state.drawn, pairs.terms.names)
    possible = _possible(runner.request.interventions, state.first)
    likely = _able(likely_interventions(findings), possible, acting)
    every = every_intervention(possible, likely) if try_all else ()
    likely += _able((every,), possible, acting)  # before those that can show nothing
    while True:
        result = search(likely, every, pairs.test, without_implied)
        if result.interventions is None:
            return _without_success(state, result, pairs, try_all=try_all)
        if result.minimal and not unable(result.interventions, acting):
            state = yield from _patched(state, runner, pairs, result.interventions)
            if state.confirmed is not None:
                return state
        weak = any((acting or {}).get(name) == "source" for name in result.interventions)
        confirmation, enough = _repeated(state, pairs, result.interventions, weak=weak)
        if confirmation.certain and unable(result.interventions, acting):
            return _with_findings(state, unexplained(findings, confirmation))
        if confirmation.certain:
            return _shown(state, result, confirmation, enough=enough)
        # They were identical by chance: more pairs are needed from now on, and other interventions.
        pairs.call_chance(result.interventions)
        state = replace(state, n_identical=state.n_identical + confirmation.identical)


def _possible(given: Sequence[str], run: ScriptRun) -> InterventionSet:
    """Return the interventions that can act in a run and are possible here, without those that it has."""
    without_gpu = run.info is not None and fact_at(run.info.environment, "torch", "gpus") == []
    return tuple(
        each.name
        for each in INTERVENTIONS
        if each.name not in given and not (each.on_gpu and without_gpu) and not why_not(each)
    )


def _able(
    sets: Sequence[InterventionSet], possible: InterventionSet, acting: Mapping[str, Trace] | None
) -> list[InterventionSet]:
    """Return the possible sets, without interventions for which the records show no trace."""
    acted = (tuple(name for name in names if acting is None or name in acting) for names in sets)
    return [names for names in dict.fromkeys(acted) if names and set(names) <= set(possible)]


def _patched(
    state: State, runner: Runner, pairs: InterventionPairs, interventions: InterventionSet
) -> States:
    """Try a patch for the cause that interventions showed once; identical runs with it are enough.

    Yields:
        what is known while it is tried, and the state as it was.

    Returns:
        the state in which the interventions are confirmed, or as it was.
    """
    once, causes = Confirmation(interventions, 1, 1, pairs.terms.max_steps), _causes(state)
    shown = _with_findings(state, attributed(state.comparison.findings, once))
    if interventions not in state.trials:
        sure = len(interventions) == 1 and pairs_needed(causes, state.n_identical)[0] == 1
        yield replace(shown, confirmed=once) if sure else _with_doubt(state, once, _BY_CHANCE)
        aim = Aim(shown.comparison, interventions, state.excluded, shown=True)
        trial = try_patch(runner, aim, Effort(FEW, FEW, pairs.terms.max_steps))
        yield (state := replace(state, trials={**state.trials, interventions: trial}))
    trial = state.trials[interventions]
    is_confirmed = trial is not None and bool(trial.confirmed)
    return _confirmed(state, once) if is_confirmed else state


def _repeated(
    state: State, pairs: InterventionPairs, interventions: InterventionSet, *, weak: bool
) -> tuple[Confirmation, bool]:
    """Make as many more pairs as are needed or there is time for, and tell whether they are enough."""
    causes = _causes(state) if len(interventions) == 1 else {*_causes(state), Cause.UNKNOWN}
    # One more pair without interventions differed: the op-level pair, or the pair of `check_recurrence`.
    differed = 1 + pairs.n_different() + weak
    least, most = pairs_needed(causes, state.n_identical, differed, weak=weak)
    done, steps = 1, pairs.terms.max_steps
    while done < most and (done < least or time.monotonic() < pairs.terms.soon):
        outcome = pairs.repeat(interventions)
        if outcome == "no time":
            break
        if outcome != "identical":
            return Confirmation(interventions, done, done + 1, steps), False
        done += 1
    return Confirmation(interventions, done, done, steps), done >= least


def _causes(state: State) -> set[Cause]:
    return {finding.cause for finding in state.comparison.findings}


def _shown(state: State, result: SearchResult, confirmation: Confirmation, *, enough: bool) -> State:
    """Return the state with interventions that made the runs identical."""
    if result.minimal and enough:
        return _confirmed(state, confirmation)
    doubted = _with_doubt(state, confirmation, _WHICH if enough else _BY_CHANCE)
    return replace(doubted, out_of_time=True)


def _confirmed(state: State, confirmation: Confirmation) -> State:
    state = _with_findings(state, attributed(state.comparison.findings, confirmation))
    return replace(state, confirmed=confirmation, trial=state.trials.get(confirmation.interventions))


def _with_doubt(state: State, shown: Confirmation, open_question: str) -> State:
    """Note that interventions made runs identical, and which question is still open."""
    return state.noted(Note.of(NoteCode.INTERVENTIONS_IN_DOUBT, shown, open_question))


def _without_success(state: State, result: SearchResult, pairs: InterventionPairs, *, try_all: bool) -> State:
    """Return the state where no interventions made the runs identical."""
    state = replace(state, out_of_time=state.out_of_time or not result.minimal)
    if not try_all:
        return state
    note = failed_note(result)
    state = _with_findings(state, withdrawn(state.comparison.findings, pairs.in_vain()))
    return state.noted(note) if note else state


def _with_findings(state: State, findings: Sequence[Finding]) -> State:
    return replace(state, comparison=replace(state.comparison, findings=tuple(findings)))
