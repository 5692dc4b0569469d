"""The state of a verification at one moment, and what its stages use: runs, and functions that compare them.

A stage is a function of a state and a runner that returns the next state. What ends a stage early leaves the
state before it. A stage that knows something in between yields that too.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from samebits.comparison.draw_pairs import draws_before
from samebits.comparison.origin import find_origins
from samebits.comparison.verdict import judge
from samebits.records.notes import Note, NoteCode
from samebits.records.reader import RecordReader
from samebits.verification.results import Purpose, Verification
from samebits.verification.runs import is_of_stress, run_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from contextlib import AbstractContextManager

    from samebits.comparison.results import Comparison, Confirmation, OriginSearch, Source
    from samebits.diagnosis.search import InterventionSet
    from samebits.verification._localise import Localisation
    from samebits.verification._request import VerifyRequest
    from samebits.verification.plans import Pair
    from samebits.verification.results import Fix, ScriptRun
    from samebits.verification.series import RunJobs, Series

    States = Generator["State", None, "State"]


@dataclass(frozen=True)
class State:
    """The state of a verification.

    Args:
        comparison: the verdict, with the findings and notes so far.
        first: the first run.
        pair: the runs that the comparison is of; None before two were compared.
        role: number of the second of them among the compared runs, from 0.
        explains: whether a difference is to be explained.
        n_values: how many tensors were compared, by the name of the run that they were compared with.
        drawn: draws that differed before the runs diverged.
        excluded: names of state tensors that are left out.
        localisation: what pairs with every operation recorded showed; None before they were made.
        searched: whether all origins were looked for.
        seen_again: False where further runs with nothing changed did not differ.
        n_identical: how many pairs were identical although nothing was changed that matters.
        confirmed: the smallest set of interventions with which the runs were identical, if there is one.
        trial: what runs with a patch showed while the cause was looked for; None where none was tried.
        trials: the same of each set of interventions for which a patch was tried.
        fix: what came of looking for a patch.
        out_of_time: whether there was no time to try everything.
        interrupted: whether Ctrl-C ended the search.
    """

    comparison: Comparison
    first: ScriptRun
    pair: Pair | None = None
    role: int = 0
    explains: bool = True
    n_values: Mapping[str, int] = field(default_factory=dict)
    drawn: tuple[Source, ...] = ()
    excluded: tuple[str, ...] = ()
    localisation: Localisation | None = None
    searched: bool = False
    seen_again: bool = True
    n_identical: int = 0
    confirmed: Confirmation | None = None
    trial: Fix | None = None
    trials: Mapping[InterventionSet, Fix | None] = field(default_factory=dict)
    fix: Fix | None = None
    out_of_time: bool = False
    interrupted: bool = False

    @property
    def compared(self) -> Pair:
        """The runs that the comparison is of.

        Raises:
            ValueError: there are no two runs yet.
        """
        if self.pair is None:
            raise ValueError("no runs were compared yet; expected two")
        return self.pair

    @property
    def differs(self) -> bool:
        """True if the runs differ."""
        return self.comparison.verdict == "different"

    def noted(self, *notes: Note) -> State:
        """Return the state with notes before the others."""
        comparison = replace(self.comparison, notes=(*notes, *self.comparison.notes))
        return replace(self, comparison=comparison)

    def failed(self) -> State:
        """Return the state with the error of samebits that is being handled."""
        failure = self.comparison.failure or traceback.format_exc()
        return replace(self, comparison=replace(self.comparison, failure=failure))


@dataclass(frozen=True)
class Tools:
    """The functions by which runs are made and compared; tests replace them.

    Args:
        run_jobs: runs the script.
        open_record: opens a record for reading.
        judge: returns the verdict over two records.
        find_origins: returns where differences came in, from two op-level records.
        draws_before: returns the draws that differ before the runs diverge, from records of any level.
    """

    run_jobs: RunJobs = run_jobs
    open_record: Callable[[str], AbstractContextManager[RecordReader]] = RecordReader
    judge: Callable[..., Comparison] = judge
    find_origins: Callable[..., OriginSearch] = find_origins
    draws_before: Callable[..., tuple[Source, ...]] = draws_before


@dataclass(frozen=True)
class Runner:
    """The runs of one verification, and the functions that compare them.

    Args:
        series: makes the runs, and remembers them.
        tools: the functions that compare them.
        tell: called with what is known so far.
        started: moment of `time.monotonic` at which the verification began.
    """

    series: Series
    tools: Tools
    tell: Callable[[Verification], None] = lambda _: None
    started: float = 0.0

    @property
    def request(self) -> VerifyRequest:
        """The request that is verified."""
        return self.series.request


def verification_of(state: State, runner: Runner) -> Verification:
    """Return the verification as it stands."""
    request = runner.request
    target = request.target
    name = (target.script,) if target.script is not None else ("-m", str(target.module))
    return Verification(
        replace(state.comparison, notes=_notes(state.comparison, runner)),
        (*name, *target.arguments),
        tuple(runner.series.runs),
        time.monotonic() - runner.started,
        sum(state.n_values.values()),
        state.fix,
        state.interrupted,
        quick=request.quick,
        op_records=_op_records(state),
    )


def _op_records(state: State) -> tuple[str, ...]:
    """Return the records of the pair in which the origins were found."""
    pair = state.localisation.pair if state.localisation is not None else None
    return () if pair is None else (pair.first.record, pair.second.record)


def _notes(comparison: Comparison, runner: Runner) -> tuple[Note, ...]:
    """Return the notes, with what `--stress` changed instead of the environment differences it makes."""
    if not runner.request.stress:
        return comparison.notes
    compared = (run for run in runner.series.runs if run.purpose == Purpose.COMPARE)
    others = (
        note
        for note in comparison.notes
        if note.code is not NoteCode.ENVIRONMENT or not is_of_stress(note.arguments[0])
    )
    stress = (
        Note.of(NoteCode.STRESS, n, run.stress) for n, run in enumerate(compared, start=1) if run.stress
    )
    return (*others, *stress)
