"""The sentences of reasons: every `Reason` in English."""

from __future__ import annotations

import os
import sys
import textwrap
from typing import TYPE_CHECKING

from samebits._runtime.processes import KILLED
from samebits._text.printable import exit_text
from samebits.comparison.reasons import ReasonCode
from samebits.records.notes import RecordedPart
from samebits.report.device_faults import failure_words
from samebits.report.resume_reasons import RESUME_SENTENCES
from samebits.report.vocabulary import rank_words, some_names, tensor_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from samebits._runtime.frames import Site
    from samebits.comparison.reasons import Reason, SamplerConflict
    from samebits.records.events import TensorInfo
    from samebits.records.kinds import EventKind, Role

_WIDTH = 120  # of the failure of a rank
_NOT_LOADED = (126, 127)  # of the dynamic loader, and of a shell that stands for the interpreter
_UNTRAINED = " (nothing is trained: each value that is read out is a step)"
# torch refuses some things while a dispatch mode is on, such as tracing a module.
_OP_HINT = (
    "; if the script runs without samebits, it does not run while every operation is recorded: leave out "
    "`--level op` to compare its steps"
)
_STATE_PARTS = {
    RecordedPart.STEP.value: "a step",
    RecordedPart.BACKWARD.value: "a backward pass",
    RecordedPart.LAST_STATE.value: "the last state",
}
_LOST_IN = {"first": "the first run", "second": "the second run", "both": "both runs"}


def sentence(reason: Reason) -> str:
    """Return the reason as a sentence without a full stop."""
    form = _SENTENCES[reason.code]
    return form.format(*reason.arguments) if isinstance(form, str) else form(*reason.arguments)


def sentence_or_none(reason: Reason | None) -> str | None:
    """Return the reason as a sentence; None where there is none."""
    return None if reason is None else sentence(reason)


def _other_scripts(*scripts: str) -> str:
    names = " and ".join(script or "none" for script in scripts)
    hint = "compare runs of one script, or two programs with `samebits compare --align names`"
    return f"the records are of two scripts, {names}: {hint}"


def _other_arguments(first: tuple[str, ...], second: tuple[str, ...]) -> str:
    return (
        f"the two runs had different arguments, `{' '.join(first) or 'none'}` and"
        f" `{' '.join(second) or 'none'}`: compare runs of the same command"
    )


def _other_code(script: str, names: tuple[str, ...]) -> str:
    which = "was" if len(names) == 1 else "were"
    return (
        f"{', '.join(names)} {which} changed while the runs of {script} were made, so they did not run the "
        "same code; verify again"
    )


def _before(steps: int) -> str:
    if steps == 0:
        return ""
    return f"; the {steps} steps before it are identical" if steps > 1 else "; step 0 is identical"


def _state_differs(step: int, tensor: tuple[Role, str, TensorInfo | None], number: int, before: int) -> str:
    more = f" and {number - 1} more" if number > 1 else ""
    return f"the state differs at step {step}: {tensor_text(*tensor)}{more}{_before(before)}"


def _value_differs(step: int, saved: bool, trained: bool, before: int, later: int | None) -> str:  # noqa: FBT001
    also = "" if later is None else f"; the state differs from step {later} on"
    untrained = "" if trained else _UNTRAINED
    verb = "saved" if saved else "read"
    return f"a value that was {verb} differs at step {step}{untrained}{_before(before)}{also}"


def _other_steps(first: int, second: int, stopped: tuple[bool, bool]) -> str:
    least = ["at least " if each else "" for each in stopped]
    n = min(first, second)
    same = "" if n == 0 else "; the first is identical" if n == 1 else f"; the first {n} are identical"
    return f"the runs made different numbers of steps, {least[0]}{first} and {least[1]}{second}{same}"


def _other_values(kind: EventKind, op: str, site: tuple[str, int] | None, first: int, second: int) -> str:
    at = f" at {site[0]}:{site[1]}" if site else ""
    only = f"{first} only in the first run, {second} only in the second"
    return f"the runs gave different values at the {kind} `{op}`{at}: {only}"


def _only_reported(number: int, trained: bool) -> str:  # noqa: FBT001 - as a reason has it
    what = "the training is identical at every step" if trained else "what is saved is identical"
    return f"{what}; {_reported(number)}"


def _reported(number: int) -> str:
    return f"{number} reported value{' differs' if number == 1 else 's differ'}"


def _compared(steps: int) -> str:
    return f"{steps} step{'' if steps == 1 else 's'} of both could be compared"


def _not_whole(endings: tuple[Reason, ...], steps: int) -> str:
    return f"{'; '.join(map(sentence, endings))}; {_compared(steps)}"


def _state_not_recorded(which: str, part: str, error: str) -> str:
    lost = f"recording of {_STATE_PARTS[part]} failed and left something out ({failure_words(error)})"
    return f"the state could not be recorded in {_LOST_IN[which]}: {lost}"


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def _run_failed(which: str, status: int | None, failure: str) -> str:
    how = "" if status is None else f" with status {status}"
    return f"the {which} run failed{how}{_in_brackets(failure_words(failure))}"


def _failed_at(failure: str, step: int, status: int) -> str:
    where = f"at step {step}" if step else "before its first step"
    return f"{failure_words(failure) or 'an exception'} ({where}, exit status {status})"


def _ranks_diverged(
    names: tuple[str, ...],
    main: tuple[int, ...],
    away: tuple[int, ...],
    step: int,
    before: bool,  # noqa: FBT001 - as a reason has it
) -> str:
    moment = f"{'before' if before else 'at'} step {step}"
    if len(main) == len(away):
        return f"{some_names(names)}: {rank_words([*main, *away])} diverge {moment}"
    verb = "diverges" if len(away) == 1 else "diverge"
    return f"{some_names(names)}: {rank_words(away)} {verb} from {rank_words(main)} {moment}"


def _ranks_incomplete(
    missing: tuple[int, ...], killed: tuple[int, ...], failed: tuple[tuple[int, int, str], ...]
) -> str:
    parts = [f"there is no record of {rank_words(missing)}"] if missing else []
    for rank, steps, failure in failed:  # why a launcher ends the others
        shown = _in_brackets(textwrap.shorten(failure_words(failure), _WIDTH))
        parts.append(f"rank {rank} failed after {steps} steps{shown}")
    if killed:
        parts.append(f"{rank_words(killed)} {'was' if len(killed) == 1 else 'were'} killed, or still running")
    return "; ".join(parts)


def loader_words(site: Site | None) -> str:
    """Return a DataLoader by the line that made it."""
    return "a DataLoader" if site is None else f"the DataLoader at {os.path.basename(site.file)}:{site.line}"


def _conflict(conflict: SamplerConflict) -> str:
    parts = [
        f"{name} " + ", ".join(f"{value} on rank {rank}" for rank, value in values)
        for name, values in conflict.settings
    ]
    parts += ["two ranks have the same `rank`"] if conflict.same_rank else []
    return f": its samplers have {'; '.join(parts)}" if parts else ""


def _samples_missing(
    site: Site | None, epoch: int, missing: int, size: int, conflict: SamplerConflict
) -> str:
    where, verb = f"{loader_words(site)}, epoch {epoch}", "is" if missing == 1 else "are"
    return f"{where}: {missing} of {size} samples {verb} on no rank{_conflict(conflict)}"


def _samples_repeated(site: Site | None, epoch: int, repeated: int, conflict: SamplerConflict) -> str:
    told = f"{repeated} sample{'' if repeated == 1 else 's'}"
    return f"{loader_words(site)}, epoch {epoch}: {told} came more than once{_conflict(conflict)}"


def _rank_without_record(which: str, ranks: tuple[int, ...]) -> str:
    return f"the {which} launch has no record of rank {', '.join(map(str, ranks))}"


def _before_record(name: str, status: int) -> str:
    end = f"{name} ended {exit_text(status)} before its record was begun"
    if status == KILLED:
        return f"{end}; a process killed without a message has usually run out of memory; see `ulimit -a` too"
    if status in _NOT_LOADED:
        return f"{end}: the interpreter could not be loaded; see what `{sys.executable} -c pass` prints"
    return f"{end}; what it printed on stderr says why (it was run by {sys.executable})"


def _hint(has_ops: bool) -> str:  # noqa: FBT001 - as a reason has it
    return _OP_HINT if has_ops else ""


def _failed_in_both(name: str, endings: tuple[Reason, ...], has_ops: bool) -> str:  # noqa: FBT001
    said = [sentence(ending) for ending in endings]
    how = said[0] if len(set(said)) == 1 else f"{said[0]} in run 1, {said[1]} in run 2"
    return f"{name} failed in both runs: {how}{_hint(has_ops)}"


def _failed_in_one(name: str, run: int, ending: Reason, stopped: bool, has_ops: bool) -> str:  # noqa: FBT001
    other = "was stopped at a difference" if stopped else "did not fail"
    return f"{name} failed in run {run} only: {sentence(ending)}; run {3 - run} {other}{_hint(has_ops)}"


def _still_differs(site: Site | None, step: int | None) -> str:
    where = f" at {site.file}:{site.line}" if site is not None else ""
    return f"still differs{where}" + (f" in step {step}" if step is not None else "")


_SENTENCES: Mapping[ReasonCode, str | Callable[..., str]] = {
    ReasonCode.OTHER_SCRIPTS: _other_scripts,
    ReasonCode.OTHER_ARGUMENTS: _other_arguments,
    ReasonCode.STATE_DIFFERS: _state_differs,
    ReasonCode.VALUE_DIFFERS: _value_differs,
    ReasonCode.RETURNED_DIFFERS: lambda before: f"what the function returned differs{_before(before)}",
    ReasonCode.OTHER_STEPS: _other_steps,
    ReasonCode.OTHER_VALUES: _other_values,
    ReasonCode.ONLY_REPORTED: _only_reported,
    ReasonCode.NOT_WHOLE: _not_whole,
    ReasonCode.BOTH_FAILED: lambda failure, steps: (
        f"both runs failed: {failure_words(failure) or 'no reason known'}; {_compared(steps)}"
    ),
    ReasonCode.BOTH_KILLED: lambda steps: f"both runs were killed or are still running; {_compared(steps)}",
    ReasonCode.STATE_NOT_RECORDED: _state_not_recorded,
    ReasonCode.RUN_FAILED: _run_failed,
    ReasonCode.RUN_EXITED: "the {} run ended with status {}",
    ReasonCode.RUN_NEVER_ENDED: lambda which, failure: (
        f"the {which} run did not finish its record{_in_brackets(failure_words(failure))}"
    ),
    ReasonCode.LEFT_NO_RECORD: lambda status: f"it ended {exit_text(status)} and left no record",
    ReasonCode.TIMED_OUT: "it did not end in {:.0f} s",
    ReasonCode.SEEN_FAILURE: failure_words,
    ReasonCode.RECORD_INCOMPLETE: "its record is incomplete: {}",
    ReasonCode.FAILED_AT: _failed_at,
    ReasonCode.RANKS_DIVERGED: _ranks_diverged,
    ReasonCode.NO_REPLICAS: "there are no replicas to compare: no parameter is to be equal",
    ReasonCode.RANKS_INCOMPLETE: _ranks_incomplete,
    ReasonCode.SAMPLES_MISSING: _samples_missing,
    ReasonCode.SAMPLES_REPEATED: _samples_repeated,
    ReasonCode.OF_RANK: lambda rank, reason: f"rank {rank}: {sentence_or_none(reason)}",
    ReasonCode.OTHER_WORLD_SIZES: "the launches had {} and {} ranks; expected the same number",
    ReasonCode.RANK_WITHOUT_RECORD: _rank_without_record,
    ReasonCode.IN_CHILD: lambda name, reason: f"in the child process {name}: {sentence_or_none(reason)}",
    ReasonCode.CHILD_WITHOUT_RECORD: (
        "the child process {} trained, and there is no record of it in the {} run"
    ),
    ReasonCode.POOL_BY_CHANCE: (
        "the child process {} of a pool did other work in each run: which process of a pool takes which task "
        "is chance, so the runs cannot be compared"
    ),
    ReasonCode.REPORTED_AND_DOUBT: lambda number, reason: (
        f"{_reported(number)}; of the rest, {sentence_or_none(reason)}"
    ),
    ReasonCode.INTERRUPTED: "interrupted after {} of {} runs, which gave the same bits",
    ReasonCode.BEFORE_RECORD: _before_record,
    ReasonCode.DID_NOT_END: lambda name, ending, has_ops: (
        f"run 1 of {name} did not end: {sentence(ending)}{_hint(has_ops)}"
    ),
    ReasonCode.FAILED_BEFORE_TORCH: lambda name, failure, status: (
        f"{name} failed before it imported torch: {failure_words(failure)} (exit status {status})"
    ),
    ReasonCode.NO_TORCH: "{} never imported torch: nothing to compare",
    ReasonCode.NOTHING_COMPARED: "{} took no step and read no value out of torch: nothing to compare",
    ReasonCode.OTHER_CODE: _other_code,
    ReasonCode.OTHER_STATUS: "the bits are equal, but the exit status is {} in run 1 and {} in run 2",
    ReasonCode.FAILED_IN_BOTH: _failed_in_both,
    ReasonCode.FAILED_IN_ONE: _failed_in_one,
    ReasonCode.WITH_PATCH: lambda reason: f"with it {sentence_or_none(reason) or ''}",
    ReasonCode.ENDS_EARLY: "with it the script ends after {} steps, before the difference",
    ReasonCode.PATCH_TIMED_OUT: "the script did not end with it in {:.0f} s",
    ReasonCode.PATCH_FAILED: lambda failure, status: (
        f"the script fails with it: {failure_words(failure) or f'exit status {status}'}"
    ),
    ReasonCode.PATCH_NOT_JUDGED: "the runs with it could not be judged",
    ReasonCode.STILL_DIFFERS: _still_differs,
    ReasonCode.NO_TIME_TO_TRY: "there was no time to try it",
    **RESUME_SENTENCES,
}
