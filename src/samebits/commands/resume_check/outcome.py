"""The result of a resume check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from samebits._runtime.frames import Site
    from samebits.comparison.results import Verdict
    from samebits.records.notes import Note
    from samebits.verification.results import ScriptRun


@dataclass(frozen=True)
class Omission:
    """A part of the state that was not restored when the resumed run made its first step.

    Args:
        what: `parameters`, `buffers`, `optimizer`, `hyperparameters`, `schedule`, `scaler`, `generator`,
            `data`, `augmentation`, `gradients` or `variables`.
        text: a description of the part and of its difference.
        evidence: further lines.
    """

    what: str
    text: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class FirstDifference:
    """The first difference between the resumed run and the whole run.

    Args:
        step: number of the step of the whole run.
        kind: kind of the event: `batch`, `loss`, `grad`, `step`, `read` or `save`; `steps` when the number of
            steps differs; `start` when the parameters match no step.
        text: the differing value.
        site: the line of the user's code, in the user's own folder.
    """

    step: int | None
    kind: str
    text: str
    site: Site | None = None


@dataclass(frozen=True)
class Kill:
    """The result of one kill.

    Args:
        after: how many steps the killed run made.
        verdict: identical, different, or not judged.
        reason: why, in one sentence.
        command: the words with which the run was resumed.
        resumed_at: number of the step of the whole run that the resumed one began with; None if it is none.
        compared: how many steps are identical.
        difference: the first one.
        omissions: parts that were not restored; of an identical run, those that made no difference so far.
        notes: further remarks.
        written: files that the killed run left, in order of time.
        is_fresh: whether the resumed run began from the beginning.
        repeats: whether the killed run gave the same bits as the whole run up to the kill.
        is_unrepeatable: whether it is not judged because the script does not repeat.
    """

    after: int
    verdict: Verdict
    reason: str = ""
    command: tuple[str, ...] = ()
    resumed_at: int | None = None
    compared: int = 0
    difference: FirstDifference | None = None
    omissions: tuple[Omission, ...] = ()
    notes: tuple[Note, ...] = ()
    written: tuple[str, ...] = ()
    is_fresh: bool = False
    repeats: bool = False
    is_unrepeatable: bool = False


@dataclass(frozen=True)
class ResumeCheck:
    """The verdict over all kills.

    Args:
        verdict: different if one is, identical if all that resumed are, else not judged.
        reason: in one sentence.
        command: the script and its arguments.
        steps: how many steps the whole run made.
        kills: the result of each.
        runs: every run that was made.
        seconds: of all of it.
        notes: further remarks.
        final_digest: of the state that the whole run ended with, and the last resumed run.
        interrupted: whether Ctrl-C ended it before the last kill.
    """

    verdict: Verdict
    reason: str
    command: tuple[str, ...]
    steps: int
    kills: tuple[Kill, ...]
    runs: tuple[ScriptRun, ...]
    seconds: float
    notes: tuple[Note, ...] = ()
    final_digest: tuple[str, str] = ("", "")
    interrupted: bool = False
