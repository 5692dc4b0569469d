"""The runs of a resume check, and how each of them ended."""

from __future__ import annotations

import glob
import os
import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError
from samebits.recording.naming import SUFFIX
from samebits.recording.settings import RecordingSettings
from samebits.recording.supervision import ended_orphans
from samebits.verification.isolation import MOST_COPIED_BYTES, StandardInput, WorkingFolder
from samebits.verification.preconditions import check_writable
from samebits.verification.results import Purpose
from samebits.verification.runs import Job, Script, run_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from samebits.commands.resume_check._check import ResumeRequest
    from samebits.commands.resume_facts import FirstDifference, Omission
    from samebits.comparison.reasons import Reason
    from samebits.comparison.results import Verdict
    from samebits.recording.runner import Target
    from samebits.records.notes import Note
    from samebits.verification.results import ScriptRun

_PLACEHOLDER = re.compile(r"\{(run|step|newest:([^{}]*))\}")
_NUMBERS = re.compile(r"(\d+)")


class NothingFoundError(Exception):
    """No file matches a pattern; the argument is the pattern."""


def split_words(text: str) -> tuple[str, ...]:
    """Split `--resume-args` into words, as a shell would.

    Raises:
        SamebitsError: a quote is not closed; `usage`.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        message = f"--resume-args {text!r}: {error}; expected words as in a shell"
        raise SamebitsError(message, slug="usage") from None


def fill_in(words: Iterable[str], folder: Path, step: int | None = None) -> tuple[str, ...]:
    """Fill in the placeholders of words; other braces stay.

    `{run}` is the folder of the run, `{step}` the number of steps before the kill, and `{newest:PATTERN}` the
    matching file or folder that was changed last, relative to the folder like the pattern. Of those that
    were changed at the same moment it is the one whose name comes last, numbers by their value.
    A link that leads nowhere (its checkpoint was deleted) does not match.

    Args:
        words: the words.
        folder: of the run.
        step: number of steps.

    Raises:
        NothingFoundError: nothing matches a pattern.
    """

    def filled(match: re.Match[str]) -> str:
        if match[1] == "run":
            return str(folder)
        if match[1] == "step":
            return match[0] if step is None else str(step)
        return _newest(match[2], folder)

    return tuple(_PLACEHOLDER.sub(filled, word) for word in words)


def _newest(pattern: str, folder: Path) -> str:
    paths = [path for path in glob.glob(pattern, root_dir=folder, recursive=True) if (folder / path).exists()]
    if not paths:
        raise NothingFoundError(pattern)
    return max(paths, key=lambda path: (os.stat(folder / path).st_mtime_ns, _natural(path)))


def _natural(path: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in _NUMBERS.split(path)]


_LEAST_LIMIT_S, _LIMIT_RUNS = 60.0, 4
_FOLDER = "working-copy"


class RunMaker:
    """Makes the runs and remembers them.

    Args:
        request: the check.
        announce: called with the name of the next run.

    Raises:
        SamebitsError: the working folder cannot be copied, or records cannot be written.
    """

    def __init__(self, request: ResumeRequest, announce: Callable[[str], None]) -> None:
        self.request = request
        self._announce = announce
        self._runs: list[ScriptRun] = []
        self._stdin = StandardInput()
        copy = request.folder.absolute() / _FOLDER
        self.folder = WorkingFolder(request.source, copy, request.share, MOST_COPIED_BYTES)
        if os.path.lexists(copy):
            message = f"{copy} exists, but the copy of the working folder goes there; give another --keep"
            raise SamebitsError(message, slug="resume-keep")
        self.folder.check()
        check_writable(self.record("whole"))

    @property
    def runs(self) -> tuple[ScriptRun, ...]:
        """The runs so far."""
        return tuple(self._runs)

    def record(self, name: str) -> Path:
        """Return the path of a run's record."""
        return self.request.folder.absolute() / f"{name}{SUFFIX}"

    def log(self, name: str) -> Path:
        """Return the path of a run's state log."""
        return self.request.folder.absolute() / f"{name}.states"

    def clean(self) -> None:
        """Remove the copy of the working folder."""
        self.folder.remove()

    def whole(self) -> ScriptRun:
        """Run it whole."""
        self._announce("the whole run")
        self.folder.renew()
        return self._run("whole", Purpose.WHOLE, RecordingSettings(""), ())

    def again(self, steps: int) -> Path | None:
        """Run it whole again up to a step, and return its record; None if it left none."""
        self._announce(f"the whole run again, {steps} steps: does it repeat?")
        self.folder.renew()
        settings = RecordingSettings("", kill_after=steps)
        run = self._run("again", Purpose.AGAIN, settings, ())
        return self.record("again") if run.info is not None else None

    def killed(self, after: int) -> ScriptRun:
        """Run it up to a step, and kill it there."""
        self._announce(f"a run that is killed after {after} step{'' if after == 1 else 's'}")
        self.folder.renew()
        return self._run(f"killed-{after}", Purpose.KILLED, RecordingSettings("", kill_after=after), ())

    def resumed(self, after: int) -> tuple[ScriptRun, tuple[str, ...]]:
        """Resume the killed run; return the words of the command too.

        Raises:
            NothingFoundError: a placeholder finds nothing.
        """
        words = fill_in(self.request.resume_args, self.folder.path, after)
        self._announce(f"resumed: {' '.join(words) or 'the same command'}")
        run = self._run(f"resumed-{after}", Purpose.RESUMED, RecordingSettings(""), words)
        return run, words

    def _run(
        self, name: str, purpose: Purpose, settings: RecordingSettings, words: tuple[str, ...]
    ) -> ScriptRun:
        request = self.request
        settings = replace(
            settings, record=str(self.record(name)), overwrite=True, state_log=str(self.log(name)),
            max_steps=request.steps, progress=request.progress, control=request.control,
            no_arguments=request.no_arguments,
        )  # fmt: skip
        limit = None if not self._runs else max(_LEAST_LIMIT_S, _LIMIT_RUNS * self._runs[0].seconds)
        script = Script(
            self._target(words), request.output, request.environment, self._stdin, limit,
            str(self.folder.path),
        )  # fmt: skip
        with ended_orphans():
            (run,) = run_jobs((Job(script, settings, purpose),))
        self._runs.append(run)
        return run

    def _target(self, words: tuple[str, ...]) -> Target:
        target, folder = self.request.target, self.folder
        script = None if target.script is None else folder.copied(target.script)
        arguments = tuple(word.replace("{run}", str(folder.path)) for word in target.arguments)
        return replace(target, script=script, arguments=(*arguments, *words))


@dataclass(frozen=True)
class Ending:
    """The end of a run that did not end as it should.

    Args:
        status: its exit status, 128 + N after signal N.
        failure: why it failed; empty if that is not known.
        seconds: after which it was ended, as it had not ended by itself; None if it had.
        has_record: whether it left a record.
    """

    status: int
    failure: str = ""
    seconds: float | None = None
    has_record: bool = True


@dataclass(frozen=True)
class Kill:
    """The result of one kill.

    Args:
        after: how many steps the killed run made.
        verdict: identical, different, or not judged.
        reason: why; None for an identical run that was resumed, and while it is not judged yet.
        resume_args: the words with which the run was resumed.
        resumed_at: number of the step of the whole run that the resumed one began with; None if it is none.
        compared: how many steps are identical.
        difference: the first one.
        omissions: parts that were not restored; of an identical run, those that made no difference so far.
        notes: further remarks.
        written: files that the killed run left, the newest first.
        is_fresh: whether the resumed run began from the beginning.
        repeats: whether the killed run gave the same bits as the whole run up to the kill.
        is_unrepeatable: whether it is not judged because the script does not repeat.
    """

    after: int
    verdict: Verdict
    reason: Reason | None = None
    resume_args: tuple[str, ...] = ()
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
        reason: why.
        steps: how many steps the whole run made.
        kills: the result of each.
        runs: every run that was made.
        seconds: of all of it.
        notes: further remarks.
        final_digest: of the state that the whole run ended with, and the last resumed run.
        interrupted: whether Ctrl-C ended it before the last kill.
    """

    verdict: Verdict
    reason: Reason | None
    steps: int
    kills: tuple[Kill, ...]
    runs: tuple[ScriptRun, ...]
    seconds: float
    notes: tuple[Note, ...] = ()
    final_digest: tuple[str, str] = ("", "")
    interrupted: bool = False
