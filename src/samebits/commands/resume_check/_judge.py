"""One kill: the killed run, the resumed one, and their comparison with the whole run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from samebits._runtime.processes import KILLED
from samebits.commands.resume_check._alignment import compare_from, find_start
from samebits.commands.resume_check._data_position import Loaded, wrong_batch
from samebits.commands.resume_check._omissions import boundary, hidden, idle_generators, omissions
from samebits.commands.resume_check._state_log import before_step, optimizer_steps, read_lines
from samebits.commands.resume_check.runs import Ending, Kill, NothingFoundError
from samebits.commands.resume_facts import (
    DifferenceKind,
    Fact,
    FactCode,
    FirstDifference,
    Omission,
    Part,
)
from samebits.comparison.reasons import Reason, ReasonCode
from samebits.records.kinds import EventKind
from samebits.records.notes import Note, NoteCode
from samebits.records.reader import RecordReader
from samebits.verification.isolation import newest_first

if TYPE_CHECKING:
    from samebits._runtime.frames import Site
    from samebits.commands.resume_check._alignment import Course, Start, WholeRun
    from samebits.commands.resume_check._state_log import Before, StateLogLines
    from samebits.commands.resume_check.runs import RunMaker
    from samebits.comparison.lookup import Record
    from samebits.comparison.steps import Step
    from samebits.verification.results import ScriptRun

_SHORT = 8


def judge_kill(maker: RunMaker, whole: WholeRun, after: int) -> Kill:
    """Kill a run after some steps, resume it, compare.

    Args:
        maker: makes the runs.
        whole: the run that was not killed.
        after: how many steps the killed run makes.
    """
    kill = kill_run(maker, whole, after)
    return kill if kill.reason else resume_run(maker, whole, kill)


def resume_run(maker: RunMaker, whole: WholeRun, kill: Kill) -> Kill:
    """Resume from the files that a killed run left, and compare.

    Args:
        maker: makes the runs.
        whole: the run that was not killed.
        kill: the result of `kill_run`.
    """
    after = kill.after
    kill = replace(kill, written=_written(maker, maker.folder.listed()))
    try:
        run, words = maker.resumed(after)
    except NothingFoundError as error:
        reason = Reason.of(ReasonCode.NO_FILE_TO_RESUME, after, str(error), kill.written)
        return replace(kill, verdict="not_judged", reason=reason)
    kill = replace(kill, resume_args=words)
    ending = _ending(run)
    if ending is not None:
        reason = Reason.of(ReasonCode.RESUMED_RUN_FAILED, after, ending)
        return replace(kill, verdict="not_judged", reason=reason)
    return _compared(maker, whole, kill)


def kill_run(maker: RunMaker, whole: WholeRun, after: int) -> Kill:
    """Make a run that is killed; it must reach the kill, and equal the whole run up to it.

    Returns:
        the kill, not judged yet; with a reason if it cannot be.
    """
    run = maker.killed(after)
    if run.status != KILLED:
        ending = _ending(run) or Ending(run.status)
        return Kill(after, "not_judged", Reason.of(ReasonCode.KILL_NOT_REACHED, after, ending))
    with RecordReader(whole.record) as a, RecordReader(maker.record(f"killed-{after}")) as b:
        course = compare_from(a, b, 0, to_end=False)
    if course.difference is not None:
        reason = Reason.of(ReasonCode.KILLED_RUN_DIFFERS, course.difference)
        return Kill(after, "not_judged", reason, is_unrepeatable=True)
    return Kill(after, "not_judged", repeats=True)


def _compared(maker: RunMaker, whole: WholeRun, kill: Kill) -> Kill:
    name = f"resumed-{kill.after}"
    first = before_step(maker.log(name), 0)
    with RecordReader(whole.record) as a, RecordReader(maker.record(name)) as b:
        if first is None:
            reason = Reason.of(ReasonCode.RESUMED_WITHOUT_STEP, kill.after)
            return replace(kill, verdict="not_judged", reason=reason)
        start = find_start(whole, a, first, kill.after)
        if start.step is None:
            return _nowhere(kill, first)
        if start.step > kill.after:
            return _too_far(kill, start.step)
        course = compare_from(a, b, start.step)
        kill = replace(kill, resumed_at=start.step, compared=course.compared)
        kill = replace(kill, is_fresh=start.step == 0 and not start.missing)
        difference = course.difference or _other_number(whole, a, b, start.step, course)
        if difference is None:
            return _identical(maker, whole, a, (kill, start, first))
        resumed = _Resumed(b, read_lines(maker.log(name)), first)
        missing = _explained(whole, a, resumed, start, difference)
    reason = Reason.of(ReasonCode.RESUMED_DIFFERS, kill.after, kill.is_fresh, difference)
    shown = replace(difference, site=_original(maker, difference.site))
    return replace(kill, verdict="different", reason=reason, difference=shown, omissions=tuple(missing))


@dataclass(frozen=True)
class _Resumed:
    """The resumed run: its record, its state log, and the state before its first step."""

    record: Record
    lines: StateLogLines
    first: Before


def _explained(
    whole: WholeRun, record: Record, resumed: _Resumed, start: Start, difference: FirstDifference
) -> list[Omission]:
    """Return what was not restored, and the wrong batch at the first difference."""
    at = boundary(whole, start, resumed.first)
    if at is None or start.step is None:
        return []
    loaded = Loaded(resumed.lines, resumed.record)
    first = [batch for batch in resumed.lines.batches if batch.step == 0]
    contents = frozenset(d[:_SHORT].hex() for batch in first for d in loaded.contents(batch))
    others = omissions(whole, record, at, contents)
    step = start.step if difference.step is None else difference.step
    batch = wrong_batch(Loaded(whole.lines, record), loaded, step, start.step)
    lost = _lost_backwards(record, resumed.record, start.step)
    return [*([batch] if batch else []), *([lost] if lost else []), *others]


def _lost_backwards(whole: Record, other: Record, start: int) -> Omission | None:
    """Return the loss of gradients that were being accumulated when the checkpoint was written."""
    due = next(islice(optimizer_steps(whole), start, None), None)
    made = next(iter(optimizer_steps(other)), None)
    if due is None or made is None:
        return None
    ours, theirs = _losses(due), _losses(made)
    if theirs >= ours:
        return None
    return Omission(Part.GRADIENTS, Fact.of(FactCode.BACKWARD_LOST, theirs, ours))


def _losses(step: Step) -> int:
    return sum(len(column) for key, column in step.evidence.columns.items() if key[0] == EventKind.LOSS)


def _identical(maker: RunMaker, whole: WholeRun, record: Record, begun: tuple[Kill, Start, Before]) -> Kill:
    kill, start, first = begun
    at = boundary(whole, start, first)
    if kill.is_fresh or at is None:
        reason = Reason.of(ReasonCode.NOTHING_RESUMED, kill.after, kill.written)
        return replace(kill, verdict="identical", reason=reason)
    seeded = before_step(maker.log(f"killed-{kill.after}"), 0)
    same = {} if seeded is None else seeded.generators
    idle = [
        name
        for name in idle_generators(whole, at)
        if same.get(name) == at.initial.generators.get(name)  # else the script does not seed it
    ]
    notes = (Note.of(NoteCode.GENERATORS_IDLE, *idle),) if idle else ()
    return replace(kill, verdict="identical", notes=notes, omissions=tuple(hidden(whole, record, at)))


def _nowhere(kill: Kill, first: Before) -> Kill:
    if not first.params:
        reason = Reason.of(ReasonCode.RESUMED_WITHOUT_PARAMETERS, kill.after)
        return replace(kill, verdict="not_judged", reason=reason)
    difference = FirstDifference(None, DifferenceKind.START, Fact.of(FactCode.FIRST_PARAMETERS))
    omission = Omission(Part.PARAMETERS, Fact.of(FactCode.PARAMETERS_OF_NO_STEP))
    reason = Reason.of(ReasonCode.RESUMED_NOWHERE, kill.after)
    return replace(kill, verdict="different", reason=reason, difference=difference, omissions=(omission,))


def _too_far(kill: Kill, step: int) -> Kill:
    reason = Reason.of(ReasonCode.RESUMED_TOO_FAR, kill.after, step)
    return replace(kill, verdict="not_judged", reason=reason, resumed_at=step)


def _other_number(
    whole: WholeRun, a: Record, b: Record, start: int, course: Course
) -> FirstDifference | None:
    left = whole.lines.n_steps - start
    if course.steps == left or "stopped" in (a.info.status, b.info.status):
        return None
    fact = Fact.of(FactCode.NUMBER_OF_STEPS, course.steps, left)
    return FirstDifference(start + min(left, course.steps), DifferenceKind.STEPS, fact)


def _ending(run: ScriptRun) -> Ending | None:
    """Return what went wrong in a run; None if nothing."""
    info = run.info
    if run.timed_out:
        return Ending(run.status, seconds=run.seconds)
    if info is None:
        return Ending(run.status, has_record=False)
    if info.status == "failed" or (info.status == "running" and run.status != KILLED):
        return Ending(run.status, info.failure)
    return Ending(run.status) if run.status else None


def _written(maker: RunMaker, files: dict[str, tuple[int, int]]) -> tuple[str, ...]:
    """Return the files that are new or changed in the copy, the newest first."""
    source = maker.folder.source
    changed = {}
    for path, facts in files.items():
        try:
            known = (source / path).stat()
        except OSError:
            changed[path] = facts
            continue
        if (known.st_size, known.st_mtime_ns) != facts:
            changed[path] = facts
    return tuple(newest_first(changed))


def _original(maker: RunMaker, site: Site | None) -> Site | None:
    return None if site is None else replace(site, file=maker.folder.original(site.file))
