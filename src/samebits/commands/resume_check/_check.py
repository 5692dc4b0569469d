"""Runs a script whole, then killed and resumed, and compares the two."""

from __future__ import annotations

import hashlib
import random
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from samebits._text.option_names import Interface
from samebits.commands.resume_check._alignment import WholeRun, compare_from
from samebits.commands.resume_check._judge import judge_kill
from samebits.commands.resume_check._state_log import (
    count_steps,
    is_optimizer_step,
    optimizer_steps,
    read_lines,
    update,
)
from samebits.commands.resume_check.runs import Ending, Kill, ResumeCheck, RunMaker
from samebits.comparison.reasons import Reason, ReasonCode
from samebits.errors import SamebitsError
from samebits.records.notes import Note, NoteCode
from samebits.records.reader import RecordReader
from samebits.verification.preconditions import script_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from samebits.commands.resume_check._state_log import Digests
    from samebits.comparison.results import Verdict
    from samebits.recording.runner import Target
    from samebits.switches.switch import Control


@dataclass(frozen=True)
class ResumeRequest:
    """The request to check one script: its runs, kills and limits.

    Args:
        target: the script or module and its arguments; `{run}` in them is the run's own folder.
        resume_args: words that follow those in a resumed run; `{newest:PATTERN}`, `{run}` and `{step}` in
            them are filled in (see `runs.fill_in`).
        folder: of the records and, during the check, the copy of the working folder.
        source: the working folder that each run gets a copy of.
        share: paths in it that all runs use together, through a link, in place of a copy.
        kill_after: the numbers of steps after which runs are killed; empty to choose `kills` of them.
        kills: how many to draw at random; None for two that are chosen from the number of steps.
        steps: stop each run after this many steps.
        output: destination of the scripts' standard output: `inherit`, `stderr` or `nothing`.
        progress: let the runs show a live line.
        control: seeds and switches of every run; None leaves the script as it is.
        environment: variables that every run has beside the user's own.
        no_arguments: keep none of the script's arguments in the records.
        budget: seconds after which no further kill is begun; None for no end.
        interface: whose options messages name.
    """

    target: Target
    resume_args: tuple[str, ...]
    folder: Path
    source: Path
    share: tuple[str, ...] = ()
    kill_after: tuple[int, ...] = ()
    kills: int | None = None
    steps: int | None = None
    output: str = "inherit"
    progress: bool = False
    control: Control | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    no_arguments: bool = False
    budget: float | None = None
    interface: Interface = Interface.COMMAND


def resume_check(request: ResumeRequest, announce: Callable[[str], None] | None = None) -> ResumeCheck:
    """Run the script whole, then for each kill once up to it and once resumed, and compare.

    Args:
        request: the check.
        announce: called with the name of the next run.

    Raises:
        SamebitsError: the folder cannot be copied, records cannot be written, or no kill is possible
            (`resume-kill-late`).
    """
    started = time.monotonic()
    maker = RunMaker(request, announce or (lambda _: None))
    try:
        return _check(request, maker, started)
    finally:
        maker.clean()


def _check(request: ResumeRequest, maker: RunMaker, started: float) -> ResumeCheck:
    run = maker.whole()
    steps, reason = _fitness(request, maker)
    if reason is not None:
        return ResumeCheck("not_judged", reason, steps, (), maker.runs, time.monotonic() - started)
    points = kill_points(request, steps)
    whole = WholeRun(maker.record("whole"), maker.log("whole"), read_lines(maker.log("whole")))
    kills: list[Kill] = []
    notes: list[Note] = []
    interrupted = False
    for number, after in enumerate(points):
        if request.budget is not None and kills and time.monotonic() - started > request.budget:
            notes.append(Note.of(NoteCode.NO_TIME_FOR_KILLS, *points[number:]))
            break
        try:
            kills.append(judge_kill(maker, whole, after))
        except KeyboardInterrupt:
            interrupted = True
            break
        if kills[-1].is_unrepeatable:
            break
    try:
        kills = kills if interrupted else _settled(maker, whole, kills)
    except KeyboardInterrupt:
        interrupted = True
    if interrupted and any(kill.difference is not None for kill in kills):
        notes.append(Note.of(NoteCode.REPETITION_NOT_SEEN))
    verdict, reason = conclude(kills)
    if interrupted and not kills:
        reason = Reason.of(ReasonCode.NO_RUN_RESUMED)
    digests = _final_digests(maker, whole, kills)
    return ResumeCheck(
        verdict, reason, steps, tuple(kills), maker.runs, time.monotonic() - started,
        (*notes, *_run_notes(run.info.notes if run.info else ())), digests, interrupted,
    )  # fmt: skip


def kill_points(request: ResumeRequest, steps: int) -> tuple[int, ...]:
    """Return the numbers of steps after which runs are killed.

    Raises:
        SamebitsError: the whole run has no step after one of them; `resume-kill-late`.
    """
    if steps < 2:
        message = (
            f"the whole run made {steps} optimizer step(s); expected at least 2, to kill it between them"
        )
        raise SamebitsError(message, slug="resume-kill-late")
    if request.kill_after:
        late = [after for after in request.kill_after if after >= steps]
        if late:
            message = (
                f"{request.interface.kill_at(late[0])}: the whole run made {steps} optimizer steps; "
                f"expected 1 to {steps - 1}, so that there is a step after the kill"
            )
            raise SamebitsError(message, slug="resume-kill-late")
        return tuple(sorted(set(request.kill_after)))
    if request.kills is not None:
        drawn = random.SystemRandom().sample(range(1, steps), min(request.kills, steps - 1))
        return tuple(sorted(drawn))
    return tuple(sorted({max(1, steps // 2), max(1, steps - 1 - steps // 6)}))


def conclude(kills: list[Kill]) -> tuple[Verdict, Reason | None]:
    """Return the verdict over all kills, and the reason."""
    different = [kill for kill in kills if kill.verdict == "different"]
    if different:
        return "different", different[0].reason
    resumed = [kill for kill in kills if kill.verdict == "identical" and not kill.is_fresh]
    open_ = [kill for kill in kills if kill.verdict == "not_judged"]
    if open_:
        return "not_judged", open_[0].reason
    if not resumed:
        return "not_judged", kills[0].reason if kills else Reason.of(ReasonCode.NO_RUN_KILLED)
    return "identical", Reason.of(ReasonCode.KILLS_IDENTICAL, len(resumed), len(kills) - len(resumed))


def _settled(maker: RunMaker, whole: WholeRun, kills: list[Kill]) -> list[Kill]:
    """Check that the script repeats at differences that lie beyond the kills of repeating runs."""
    covered = max((kill.after for kill in kills if kill.repeats), default=0)
    beyond = [
        kill for kill in kills if kill.difference is not None and (kill.difference.step or 0) >= covered
    ]
    if not beyond:
        return kills
    last = max(kill.difference.step or 0 for kill in beyond if kill.difference is not None)
    again = maker.again(last + 1)
    if again is None:
        return kills
    with RecordReader(whole.record) as a, RecordReader(again) as b:
        course = compare_from(a, b, 0, to_end=False)
    if course.difference is None or course.difference.step is None:
        return kills
    broken = course.difference.step
    reason = Reason.of(ReasonCode.WHOLE_RUNS_DIFFER, course.difference)
    return [
        replace(kill, verdict="not_judged", reason=reason, is_unrepeatable=True)
        if kill.difference is not None and (kill.difference.step or 0) >= broken
        else kill
        for kill in kills
    ]


def _fitness(request: ResumeRequest, maker: RunMaker) -> tuple[int, Reason | None]:
    """Return the whole run's number of optimizer steps, and why it cannot be used; None if it can."""
    run, name = maker.runs[0], script_name(request.target)
    info = run.info
    if info is None:
        return 0, Reason.of(ReasonCode.BEFORE_RECORD, name, run.status)
    if info.status in ("failed", "running") or run.status != 0:
        return info.steps, Reason.of(ReasonCode.WHOLE_RUN_FAILED, name, Ending(run.status, info.failure))
    if not info.torch:
        return 0, Reason.of(ReasonCode.NO_TORCH, name)
    with RecordReader(maker.record("whole")) as record:
        steps = count_steps(record)
    return steps, None if steps else Reason.of(ReasonCode.NO_OPTIMIZER_STEP, name)


def _final_digests(maker: RunMaker, whole: WholeRun, kills: list[Kill]) -> tuple[str, str]:
    resumed = [kill for kill in kills if kill.resumed_at is not None]
    first = _last_state(whole.record)
    return (first, _last_state(maker.record(f"resumed-{resumed[-1].after}")) if resumed else "")


def _last_state(path: Path) -> str:
    """Return one digest over the contents of the model's last state, without its names."""
    state: Digests = {}
    with ExitStack() as stack:
        try:
            record = stack.enter_context(RecordReader(path))
        except SamebitsError:
            return ""
        for step in optimizer_steps(record):
            if is_optimizer_step(step):
                state = {}
                update(state, step)
    return hashlib.blake2b(b"".join(sorted(state.values())), digest_size=16).hexdigest() if state else ""


def _run_notes(notes: tuple[Note, ...]) -> tuple[Note, ...]:
    return tuple(Note.of(NoteCode.WHOLE_RUN, note) for note in notes)
