"""The sentences of the reasons of a resume check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits._text.printable import exit_text
from samebits.commands.resume_facts import DifferenceKind
from samebits.comparison.reasons import ReasonCode
from samebits.report.device_faults import failure_words
from samebits.report.resume_sentences import sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from samebits.commands.resume_check.runs import Ending, Kill
    from samebits.commands.resume_facts import FirstDifference, Omission

_SHOWN_FILES = 4
_OTHER_CHECKPOINT = "a checkpoint of another run, outside the working folder"
_PAGE = "(see docs/reference/resume-check.md)"


def evidence_lines(kill: Kill, omission: Omission) -> tuple[str, ...]:
    """Return the lines below what was not restored.

    Args:
        kill: the kill.
        omission: one of its omissions.
    """
    lines = tuple(sentence(fact) for fact in omission.evidence)
    begun_elsewhere = kill.difference is not None and kill.difference.kind == DifferenceKind.START
    return (*lines, _files_words(kill.written)) if begun_elsewhere else lines


def _files_words(written: tuple[str, ...]) -> str:
    if not written:
        return "the killed run had written no file into its folder"
    more = f" and {len(written) - _SHOWN_FILES} more" if len(written) > _SHOWN_FILES else ""
    return f"the killed run had written {', '.join(written[:_SHOWN_FILES])}{more}"


def _ending_words(ending: Ending) -> str:
    if ending.seconds is not None:
        return f"did not end in {ending.seconds:.0f} s"
    if not ending.has_record:
        return f"ended {exit_text(ending.status)} and left no record"
    if ending.failure:
        return f"failed: {failure_words(ending.failure)} (exit status {ending.status})"
    return f"ended {exit_text(ending.status)}"


def _after(steps: int) -> str:
    return f"after {steps} step{'' if steps == 1 else 's'}"


def _unrepeatable(place: str, difference: FirstDifference) -> str:
    where = f"step {difference.step} ({sentence(difference.fact)})"
    return f"the script itself does not repeat: {place} at {where}; use `samebits verify` first"


def _resumed_differs(after: int, is_fresh: bool, difference: FirstDifference) -> str:  # noqa: FBT001
    begun = f"{_after(after)} nothing was resumed, and" if is_fresh else f"resumed {_after(after)},"
    return f"{begun} it differs from step {difference.step} on: {sentence(difference.fact)}"


def _resumed_too_far(after: int, step: int) -> str:
    return (
        f"killed {_after(after)}, but the resumed run begins at step {step}: it found {_OTHER_CHECKPOINT}; "
        f"let the script save into `{{run}}` {_PAGE}"
    )


def _kills_identical(kills: int, fresh: int) -> str:
    more = (
        f"; after {fresh} more the script started from the beginning, as it had saved nothing yet"
        if fresh
        else ""
    )
    return f"after {kills} kill{'s' if kills > 1 else ''} the resumed run gave the same bits{more}"


RESUME_SENTENCES: Mapping[ReasonCode, str | Callable[..., str]] = {
    ReasonCode.WHOLE_RUN_FAILED: lambda name, ending: f"the whole run of {name} {_ending_words(ending)}",
    ReasonCode.NO_OPTIMIZER_STEP: "{} made no optimizer step (`Optimizer.step`): nothing to compare",
    ReasonCode.KILL_NOT_REACHED: lambda after, ending: (
        f"the run that was to be killed {_after(after)} {_ending_words(ending)}: it did not get that far"
    ),
    ReasonCode.KILLED_RUN_DIFFERS: lambda difference: _unrepeatable(
        "before the kill it differs from the whole run", difference
    ),
    ReasonCode.WHOLE_RUNS_DIFFER: lambda difference: _unrepeatable("a second whole run differs", difference),
    ReasonCode.NO_FILE_TO_RESUME: lambda after, pattern, written: (
        f"{_after(after)} there is no file {pattern}: {_files_words(written)}"
    ),
    ReasonCode.RESUMED_RUN_FAILED: lambda after, ending: (
        f"the run resumed {_after(after)} {_ending_words(ending)}"
    ),
    ReasonCode.RESUMED_WITHOUT_STEP: lambda after: (
        f"the run resumed {_after(after)} made no optimizer step: did it find {_OTHER_CHECKPOINT}? {_PAGE}"
    ),
    ReasonCode.RESUMED_WITHOUT_PARAMETERS: lambda after: (
        f"the run resumed {_after(after)} has no parameters that could be compared"
    ),
    ReasonCode.RESUMED_TOO_FAR: _resumed_too_far,
    ReasonCode.RESUMED_NOWHERE: lambda after: (
        f"resumed {_after(after)}, its parameters match no step of the whole run"
    ),
    ReasonCode.RESUMED_DIFFERS: _resumed_differs,
    ReasonCode.NOTHING_RESUMED: lambda after, written: (
        f"{_after(after)} nothing was resumed: the run began from the beginning ({_files_words(written)})"
    ),
    ReasonCode.KILLS_IDENTICAL: _kills_identical,
    ReasonCode.NO_RUN_KILLED: "no run was killed",
    ReasonCode.NO_RUN_RESUMED: "interrupted before a run was resumed",
}
