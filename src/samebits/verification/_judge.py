"""The first stages: the runs are made and compared until two of them differ."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits.comparison.reasons import Reason, ReasonCode
from samebits.comparison.results import Comparison
from samebits.comparison.verdict import compare
from samebits.environment.snapshot import table_at
from samebits.recording.settings import RecordingSettings
from samebits.records.events import split_command
from samebits.records.kinds import EventKind
from samebits.records.notes import Note, NoteCode
from samebits.records.reader import RecordReader
from samebits.verification import preconditions
from samebits.verification._child_records import children_of, with_children
from samebits.verification._state import State, Tools
from samebits.verification.plans import Pair, Plan
from samebits.verification.results import Purpose, ScriptRun, Verification
from samebits.verification.user_files import blamed, changed_code, note_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from samebits.comparison.results import Verdict
    from samebits.recording.runner import Target
    from samebits.records.events import Event, RunInfo
    from samebits.verification._state import Runner
    from samebits.verification.user_files import EarlierFile

_REMADE = ("-excused", "-whole")  # endings of the names of runs that are made once more


def run_first(runner: Runner) -> State:
    """Make run 1, and check whether a second run would have anything to compare.

    Returns:
        A state; its comparison has a reason if there is nothing to compare.
    """
    runner.series.prepare([_plan(runner, role) for role in range(runner.request.runs)])
    first = runner.series.run(_plan(runner, 0))
    reason = preconditions.nothing_to_compare(first, runner.request.target)
    notes = first.info.notes if reason and first.info is not None else ()
    return State(Comparison("not_judged", reason, _steps(first), notes=notes), first)


def judge(state: State, runner: Runner) -> Iterator[State]:
    """Make the other runs and compare each with the first, until the state of one differs.

    Yields:
        a state after each; in the end that of the first pair whose state differs, else of the first that
        differs at all.
    """
    for role in range(1, runner.request.runs):
        judged = _compared(state, runner, role)
        has_verdict = state.pair is not None and state.comparison.verdict != "identical"
        ends = "identical" not in (judged.comparison.verdict, judged.comparison.state)
        state = judged if ends or not has_verdict else replace(state, n_values=judged.n_values)
        yield state
        if ends:
            return


def _compared(state: State, runner: Runner, role: int) -> State:
    """Make the run of that number, and compare it with run 1."""
    first, steps = state.first, runner.request.steps
    pair = Pair(first, runner.series.run(_plan(runner, role, reference=first.record)))
    judged = _with_verdict(state, runner, pair, role)
    if judged.differs and are_of_two_processors(pair):
        return judged.noted(_note_of_processors(pair, role))
    if judged.comparison.verdict == "identical" and _was_stopped(pair, steps):
        # The whole step shows no difference, so the run is made again to its end.
        pair = Pair(first, runner.series.run(_whole(_plan(runner, role))))
        return _with_verdict(judged, runner, pair, role)
    return judged


def are_of_two_processors(pair: Pair) -> bool:
    """Tell whether two runs were made by different processors, whose arithmetic may differ."""
    facts = [_processor_of(run) for run in (pair.first, pair.second)]
    return all(facts) and facts[0] != facts[1]


def _processor_of(run: ScriptRun) -> tuple[Any, ...]:
    """Return the name of the processor that made a run, and its instruction sets; empty without a record."""
    facts = table_at(run.info.environment, "machine") if run.info is not None else {}
    return (facts.get("processor"), facts.get("instructions")) if facts else ()


def _note_of_processors(pair: Pair, role: int) -> Note:
    machines = [(run.machine, str(_processor_of(run)[0] or "")) for run in (pair.first, pair.second)]
    return Note.of(NoteCode.TWO_PROCESSORS, *machines, role + 1)


def cut_short(state: State, runner: Runner) -> State:
    """Return the state of a verification that the user ended before all runs were compared."""
    state = replace(state, interrupted=True)
    if state.comparison.verdict != "identical":
        return state.noted(Note.of(NoteCode.INTERRUPTED))
    reason = Reason.of(ReasonCode.INTERRUPTED, len(state.n_values) + 1, runner.request.runs)
    comparison = replace(state.comparison, verdict="not_judged", state="not_judged", reason=reason)
    return replace(state, comparison=comparison)


def judge_again(state: State, runner: Runner) -> State:
    """Compare with one more run if the last one read files that an earlier run had written.

    Such a run did different work, so a difference says nothing. The next run does the same work.
    """
    state = replace(state, explains=runner.request.localise)
    files = runner.series.earlier_files()
    if not files:
        return state
    latest = sum(run.purpose == Purpose.COMPARE for run in runner.series.runs)
    if not (state.differs and state.role == latest - 1):
        return state.noted(note_of(files, latest))
    return _after_preparation(state, runner, latest, files)


def _after_preparation(state: State, runner: Runner, latest: int, files: tuple[EarlierFile, ...]) -> State:
    """Return the verdict over the last two runs, which both started with the same files."""
    runner.series.mark_first_as_preparation()
    second = state.compared.second
    pair = Pair(second, runner.series.run(_plan(runner, latest, reference=second.record)))
    judged = _with_verdict(state, runner, pair, state.role)
    again = runner.series.earlier_files(latest - 1)
    if judged.comparison.verdict == "identical":
        return judged.noted(note_of(files, latest, state.comparison.reason))
    if judged.differs and again:
        return _with_files_blamed(judged, again, latest + 1)
    return judged.noted(note_of(files, latest))


def _with_files_blamed(state: State, files: tuple[EarlierFile, ...], number: int) -> State:
    comparison = blamed(state.comparison, files)
    return replace(state, comparison=comparison, explains=False).noted(note_of(files, number))


def exclude_unread(state: State, runner: Runner) -> State:
    """Judge without state that differs only in memory that nothing wrote and nothing read.

    The second run was stopped where that memory differed, so it is made again to go further.
    """
    origins = state.localisation.origins if state.localisation is not None else None
    if origins is None:
        return state
    pair, excluded = state.compared, origins.unread
    if not runner.request.full:
        plan = _plan(runner, state.role, reference=pair.first.record, excluded=excluded)
        pair = Pair(pair.first, runner.series.run(plan))
    judged = _with_verdict(state, runner, pair, state.role, excluded)
    notes = judged.comparison.notes
    notes = (*notes, *(note for note in origins.notes if note not in notes))
    return replace(judged, comparison=replace(judged.comparison, notes=notes), excluded=excluded)


def _plan(runner: Runner, role: int, *, reference: str = "", excluded: tuple[str, ...] = ()) -> Plan:
    """Plan one of the runs that are compared."""
    request = runner.request
    settings = RecordingSettings(
        record="",
        level=request.level,
        reference="" if request.full else reference,
        excluded=excluded,
    )
    description = f"run {role + 1} of {max(role + 1, request.runs)}"
    if excluded:
        description = f"{description}, memory that nothing read left out"
        return Plan(f"run-{role + 1}-excused", description, settings, Purpose.EXCUSE, role)
    return Plan(f"run-{role + 1}", description, settings, role=role, more=request.runs - role - 1)


def _whole(plan: Plan) -> Plan:
    """Plan once more a run that ended early, now to its end."""
    return replace(plan, name=f"{plan.name}-whole", purpose=Purpose.EXCUSE)


def _with_verdict(
    state: State, runner: Runner, pair: Pair, role: int, excluded: Collection[str] = ()
) -> State:
    """Return the state with the verdict over two runs, unless the script itself failed."""
    comparison, n_values = _verdict(runner, pair, excluded)
    return replace(
        state, comparison=comparison, pair=pair, role=role, n_values={**state.n_values, **n_values}
    )


def _verdict(runner: Runner, pair: Pair, excluded: Collection[str]) -> tuple[Comparison, Mapping[str, int]]:
    """Return the verdict over two runs, and the number of compared tensors by the second run's name."""
    runs, target = (pair.first, pair.second), runner.request.target
    reason = preconditions.failure(runs, target)
    if pair.second.info is None:
        return Comparison("not_judged", reason, _steps(pair.first)), {}
    comparison, n_values = judged(pair, runner.tools, target, excluded)
    name = Path(pair.second.record).stem
    for ending in _REMADE:
        name = name.removesuffix(ending)
    changed = changed_code(pair.first.info, pair.second.info) if comparison.verdict == "different" else ()
    if changed:
        reason = Reason.of(ReasonCode.OTHER_CODE, preconditions.script_name(target), changed)
        return Comparison("not_judged", reason, comparison.steps, notes=comparison.notes), {name: n_values}
    if reason:
        return _with_failure(comparison, reason), {name: n_values}
    note = preconditions.exit_note(runs, target) if comparison.verdict != "not_judged" else None
    comparison = replace(comparison, notes=(*comparison.notes, note)) if note else comparison
    return comparison, {name: n_values}


def judged(
    pair: Pair, tools: Tools, target: Target, excluded: Collection[str] = ()
) -> tuple[Comparison, int]:
    """Return the verdict over two runs that left records, and how many tensors of the first were compared.

    Runs that took no step and gave no value, or ended with different statuses, are not judged identical.
    Whether they failed is not checked.

    Args:
        pair: the runs.
        tools: compare them.
        target: the script.
        excluded: names of state tensors that are left out.
    """
    with ExitStack() as stack:
        a = Counted(stack.enter_context(tools.open_record(pair.first.record)))
        b = stack.enter_context(tools.open_record(pair.second.record))
        comparison = tools.judge(a, b, excluded=excluded)
    runs = (pair.first, pair.second)
    comparison = _without_doubt(comparison, runs, a.kinds, tools, preconditions.script_name(target))
    return with_children(comparison, (runs[0].record, runs[1].record), tools, excluded), a.n_values


def _without_doubt(
    comparison: Comparison, runs: tuple[ScriptRun, ScriptRun], kinds: set[EventKind], tools: Tools, name: str
) -> Comparison:
    """Withdraw a verdict that equal bits are not enough for; see `preconditions.doubt`."""
    if "identical" not in (comparison.verdict, comparison.state):
        return comparison
    trained = any(children_of(run.record, tools) for run in runs)
    doubt = preconditions.doubt(runs, kinds | ({EventKind.STEP} if trained else set()), name)
    if doubt is None:
        return comparison
    if comparison.verdict != "identical":
        return replace(comparison, state="not_judged")
    return replace(comparison, verdict="not_judged", state="not_judged", reason=doubt)


class Counted:
    """A record that counts the tensors that were read in one pass over all of its steps.

    Args:
        record: the record.
    """

    def __init__(self, record: RecordReader) -> None:
        self._record = record
        self.n_values = 0
        self.kinds: set[EventKind] = set()

    @property
    def info(self) -> RunInfo:
        """See `RecordReader`."""
        return self._record.info

    def events(
        self, kinds: Sequence[EventKind] = (), first_step: int | None = None, last_step: int | None = None
    ) -> Iterator[Event]:
        """See `RecordReader`."""
        n_values = 0
        for event in self._record.events(kinds, first_step, last_step):
            n_values += len(event.digests)
            self.kinds.add(event.kind)
            yield event
        if EventKind.OP not in kinds:
            self.n_values = max(self.n_values, n_values)

    def event(self, seq: int) -> Event:
        """See `RecordReader`."""
        return self._record.event(seq)


def verify_records(first: str, second: str, name: str = "") -> Verification:
    """Compare two records; where both have operations, name the first that differed.

    Args:
        first: path of one record.
        second: path of the other.
        name: of what was run, for a message; the script that the record names if empty.

    Raises:
        SamebitsError: one of them cannot be read.
    """
    verification = verification_of_records(first, second, name)
    comparison = with_children(verification.comparison, (first, second), Tools())
    return replace(verification, comparison=comparison)


def verification_of_records(first: str | Path, second: str | Path, name: str = "") -> Verification:
    """Compare two records, without those of child processes.

    Args:
        first: path of one record.
        second: path of the other.
        name: see `verify_records`.

    Raises:
        SamebitsError: one of them cannot be read.
    """
    with RecordReader(first) as a, RecordReader(second) as b:
        counted = Counted(a)
        comparison = compare(counted, b)
    runs = _read_run(first, a.info, b.info), _read_run(second, b.info, a.info)
    name = name or split_command(a.info.command)[0] or "the script"
    comparison = _without_doubt(comparison, runs, counted.kinds, Tools(), name)
    return Verification(comparison, a.info.command, runs, 0.0, counted.n_values)


def _read_run(record: str | Path, info: RunInfo, other: RunInfo) -> ScriptRun:
    """Return the run of a record; an exit status that is not known counts as that of the other."""
    status = other.exit_status if info.exit_status is None else info.exit_status
    return ScriptRun(Purpose.COMPARE, str(record), status or 0, 0.0, info=info)


def _was_stopped(pair: Pair, steps: int | None) -> bool:
    """Tell whether the second run was stopped where its state seemed to differ."""
    a, b = pair.first.info, pair.second.info
    return (
        steps is None and a is not None and b is not None and (a.status, b.status) == ("finished", "stopped")
    )


def _steps(run: ScriptRun) -> int:
    return 0 if run.info is None else run.info.steps


def _with_failure(comparison: Comparison, reason: Reason) -> Comparison:
    """Return the verdict over runs that failed; a difference before the failure, often its cause, stays."""
    if comparison.verdict == "different":
        state: Verdict = "different" if comparison.state == "different" else "not_judged"
        return replace(comparison, notes=(*comparison.notes, Note.of(NoteCode.UNFIT, reason)), state=state)
    return replace(comparison, verdict="not_judged", state="not_judged", reason=reason)
