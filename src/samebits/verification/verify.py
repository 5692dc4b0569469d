"""A whole verification, from the first run to the fix: its stages and their order."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError
from samebits.records.creation import drop_contents, sidecars
from samebits.records.notes import Note, NoteCode
from samebits.verification._intervene import InterventionPairs, check_recurrence, intervene, terms_of
from samebits.verification._iterate import hides_a_generator, iterate
from samebits.verification._judge import (
    are_of_two_processors,
    cut_short,
    exclude_unread,
    judge,
    judge_again,
    run_first,
)
from samebits.verification._localise import has_only_unread, localise, take_origins
from samebits.verification._measure import lacks_difference, measure, replay
from samebits.verification._remedy import answer, fix, patch_draws, remedy
from samebits.verification._state import Runner, State, Tools, verification_of
from samebits.verification.plans import BudgetSpent, Pair, Phase
from samebits.verification.preconditions import check_target
from samebits.verification.results import Purpose
from samebits.verification.series import Series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from samebits.verification._request import VerifyRequest
    from samebits.verification.results import ScriptRun, Verification

_RETAINED = frozenset({Purpose.PREPARE, Purpose.COMPARE, Purpose.EXCUSE, Purpose.LOCALISE, Purpose.REPLAY})
_SHRUNK = frozenset({Purpose.LOCALISE, Purpose.REPLAY})


def verify(
    request: VerifyRequest,
    *,
    announce: Callable[[Phase], None] | None = None,
    tell: Callable[[Verification], None] | None = None,
    tools: Tools | None = None,
) -> Verification:
    """Run a script several times in fresh processes and say whether it gives the same bits.

    Args:
        request: what is verified, and how.
        announce: called with what is about to run.
        tell: called with the result so far when the runs differ, and when the operation is found.
        tools: how runs are made and compared.

    Raises:
        SamebitsError: the script cannot be run, or the records cannot be written.
        KeyboardInterrupt: by Ctrl-C before there is a verdict; records are kept.
    """
    used = tools or Tools()
    series = Series(request, announce, used.run_jobs)
    runner = Runner(series, used, tell or (lambda _: None), time.monotonic())
    try:
        result = verification_of(_last_state(runner), runner)
        return result if request.keep_records else pruned(result)
    finally:
        series.close()


def _last_state(runner: Runner) -> State:
    """Run all stages, and return the last state."""
    check_target(runner.request.target)
    runner.series.check_folder()
    state = run_first(runner)
    if state.comparison.reason:
        return state
    state = _judged(state, runner)
    if state.interrupted:
        return state
    state = _with_examined_pair(judge_again(state, runner), runner)
    if _needs_explanation(state, runner):
        runner.tell(verification_of(state, runner))
        state = _explained(state, runner)
    return _concluded(state, runner)


def _explanation(state: State, runner: Runner) -> Iterator[State]:
    """Explain why the runs differ: operation, amount, all origins, what takes the difference away."""
    begun = time.monotonic()
    yield (state := localise(state, runner))
    if has_only_unread(state):
        yield (state := exclude_unread(state, runner))
        if not state.differs:
            return
        yield (state := localise(state, runner))
    yield (state := take_origins(state))
    yield (state := measure(state, runner.tools))
    answer(state, runner)
    if runner.request.quick:
        return
    if hides_a_generator(state, runner):  # one run shows what many interventions would only suggest
        yield (state := iterate(state, runner))
    yield (state := patch_draws(state, runner))
    if state.trial is not None:
        if lacks_difference(state) and not (state.searched or _is_split(state)):
            yield iterate(state, runner)
        return
    pairs = InterventionPairs(runner, terms_of(state, runner, begun))
    yield (state := check_recurrence(state, runner, pairs))
    yield (state := (yield from intervene(state, runner, pairs)))
    if not state.searched and (state.confirmed is None or lacks_difference(state)):
        yield (state := iterate(state, runner))
    if state.confirmed is None:
        yield (yield from intervene(state, runner, pairs, try_all=True))


def _conclusion(state: State, runner: Runner) -> Iterator[State]:
    """Conclude: remedies, a patch that was tried, what executing operations again shows."""
    yield (state := remedy(state, runner))
    yield (state := fix(state, runner))
    if state.comparison.verdict != "not_judged" and runner.request.replay and not state.interrupted:
        yield replay(state, runner)


def _judged(state: State, runner: Runner) -> State:
    """Return the state after the runs were compared.

    Raises:
        KeyboardInterrupt: by Ctrl-C before two runs were compared.
    """
    latest = state
    try:
        for latest in judge(state, runner):  # noqa: B007 - the last one counts
            pass
    except KeyboardInterrupt:
        if latest.pair is None:
            raise
        return cut_short(latest, runner)
    return latest


def _explained(state: State, runner: Runner) -> State:
    """Return the last state of the explanation; where it ended early, with a note of why."""
    latest = state
    try:
        with runner.series.limited():
            for latest in _explanation(state, runner):  # noqa: B007 - the last one counts
                pass
    except BudgetSpent:
        return latest.noted(_time_was_over(runner))
    except (SamebitsError, OSError) as error:
        return latest.noted(Note.of(NoteCode.SEARCH_FAILED, str(error)))
    except KeyboardInterrupt:
        return replace(latest, interrupted=True).noted(Note.of(NoteCode.INTERRUPTED))
    except Exception:  # noqa: BLE001 - a bug of ours: the verdict stands, and what is known so far
        return latest.failed()
    return latest.noted(_time_was_over(runner)) if latest.out_of_time else latest


def _concluded(state: State, runner: Runner) -> State:
    """Return the last state of the conclusion; where it ended early, with what is known."""
    latest = state
    try:
        for latest in _conclusion(state, runner):  # noqa: B007 - the last one counts
            pass
    except (SamebitsError, OSError) as error:
        return latest.noted(Note.of(NoteCode.SEARCH_FAILED, str(error)))
    except KeyboardInterrupt:
        return replace(latest, interrupted=True).noted(Note.of(NoteCode.INTERRUPTED))
    except Exception:  # noqa: BLE001 - a bug of ours: the verdict stands, and what is known so far
        return latest.failed()
    return latest


def _with_examined_pair(state: State, runner: Runner) -> State:
    """Return the state whose pair is explained: with a child's records where a child differs."""
    series, comparison = runner.series, state.comparison
    series.examine(comparison.child if state.differs else "", count_reads=comparison.counts_reads)
    pair = state.compared
    return replace(state, pair=Pair(series.examined(pair.first), series.examined(pair.second)))


def _needs_explanation(state: State, runner: Runner) -> bool:
    passed = runner.request.state_only and state.comparison.state == "identical"
    if passed or not (state.differs and state.explains):
        return False
    return not are_of_two_processors(state.compared)


def _is_split(state: State) -> bool:
    """Tell whether several findings are of one event, whose value can be replaced only once."""
    origins = state.localisation.origins if state.localisation is not None else None
    return origins is not None and len(state.comparison.findings) > len(origins.findings)


def _time_was_over(runner: Runner) -> Note:
    return Note.of(NoteCode.OUT_OF_TIME, runner.series.budget_s)


def pruned(result: Verification) -> Verification:
    """Remove the records of runs with a change, and the saved tensors from the others.

    `show` and `compare` need neither. What cannot be removed stays.

    Args:
        result: of a verification that is over.
    """
    return replace(result, runs=tuple(map(_pruned, result.runs)))


def _pruned(run: ScriptRun) -> ScriptRun:
    record = Path(run.record)
    if run.purpose in _SHRUNK:
        drop_contents(record)
    if run.purpose in _RETAINED:
        return run
    for path in (record, *sidecars(record)):
        with contextlib.suppress(OSError):
            path.unlink()
    return replace(run, has_record=False)
