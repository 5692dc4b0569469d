"""Makes the runs of a lock entry: its command with its control, on its code or on that of another tree."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.commands.lock.entry import LockRow, rows_of
from samebits.errors import SamebitsError
from samebits.interventions.plan import combine
from samebits.recording.naming import SUFFIX
from samebits.recording.runner import Target
from samebits.recording.settings import Inventory, RecordingSettings
from samebits.records.kinds import Level
from samebits.verification import VerifyRequest, verify
from samebits.verification.preconditions import has_failed
from samebits.verification.runs import Job, Script, run_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from samebits.records.events import RunInfo
    from samebits.switches.switch import Control
    from samebits.verification import Verification

_RUNS = 8  # until two of them differ
# Of tensors in a record of operations, to say how far values are apart.
_KEPT_BYTES = 1 << 20
_KEPT_ELEMENTS = 256  # of each, so that the first large ones do not use it up


@dataclass(frozen=True)
class Recipe:
    """What is run: the command of an entry, and how.

    Args:
        command: as in the entry.
        control: of the run.
        interventions: their names.
        folder: in which it runs.
        records: folder for the records.
        environment: variables beside this program's own.
        without: names of variables of this program that the run does not have.
        moved: real path of another tree of the code, and of the user's own in whose place it is run.
        max_steps: stop after so many steps; None lets it go to its end.
        output: where the script's output goes: `inherit`, `stderr` or `nothing`.
        progress: show progress in the last row of the terminal.
    """

    command: tuple[str, ...]
    control: Control | None
    interventions: tuple[str, ...]
    folder: Path
    records: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    moved: tuple[str, str] | None = None
    max_steps: int | None = None
    output: str = "nothing"
    progress: bool = False

    @property
    def target(self) -> Target:
        """The script or module."""
        if self.command[:1] == ("-m",):
            return Target(None, self.command[1], self.command[2:])
        return Target(self.command[0], None, self.command[1:])


@dataclass(frozen=True)
class LockRun:
    """A run that was made.

    Args:
        record: path of its record.
        info: its facts.
        rows: its digests; none for a run that failed.
        failed: whether it did not end as it should.
        status: its exit status as a shell would show it.
        begun: when, in seconds of `time.time`; 0 where nobody asked.
    """

    record: str
    info: RunInfo | None
    rows: tuple[LockRow, ...]
    failed: bool
    status: int
    begun: float = 0.0


def run(recipe: Recipe, name: str, *, inventory: bool = False) -> LockRun:
    """Make a run, recorded by steps.

    Args:
        recipe: what is run.
        name: of the record, without its suffix.
        inventory: keep digests of the code and the data.

    Raises:
        SamebitsError: the process cannot be started; several threads of it make steps (`lock-threads`).
        KeyboardInterrupt: by Ctrl-C.
    """
    record = recipe.records / f"{name}{SUFFIX}"
    values = recipe.records / f"{name}.values"
    settings = RecordingSettings(
        record=str(record), values=str(values), inventory=Inventory(changes=False) if inventory else None
    )
    return _made(recipe, settings, str(values))


def run_operations(recipe: Recipe, name: str, *, first: int = 0) -> LockRun:
    """Make a run with every operation recorded, and some of their values.

    Args:
        recipe: what is run, and how many steps of it.
        name: of the record, without its suffix.
        first: number of the first step whose operations are recorded.
    """
    settings = RecordingSettings(
        record=str(recipe.records / f"{name}{SUFFIX}"),
        level=Level.OP,
        first_op_step=first,
        keep_bytes=_KEPT_BYTES,
        keep_elements=_KEPT_ELEMENTS,
        keep_from_step=first,
    )
    return _made(recipe, settings, "")


def _made(recipe: Recipe, settings: RecordingSettings, values: str) -> LockRun:
    script = Script(
        recipe.target,
        output=recipe.output,
        environment=_variables(recipe),
        folder=str(recipe.folder),
    )
    settings = replace(
        settings,
        control=recipe.control,
        interventions=recipe.interventions,
        moved=recipe.moved,
        max_steps=recipe.max_steps,
        progress=recipe.progress,
        overwrite=True,
    )
    begun = time.time()
    with unset(recipe.without):
        (made,) = run_jobs((Job(script, settings),))
    if made.info is None:
        message = f"the run left no record (exit status {made.status}); expected one at {settings.record}"
        raise SamebitsError(message, slug="record-missing")
    failed = has_failed(made)
    rows = () if failed or settings.level is Level.OP else rows_of(settings.record, values)
    return LockRun(settings.record, made.info, rows, failed, made.status, begun)


def run_failure(made: LockRun) -> SamebitsError:
    """Return the error of a run that did not end as it should; `lock-run-failed`."""
    why = (made.info.failure if made.info is not None else "") or f"exit status {made.status}"
    message = f"the run failed: {why}; expected one that ends as the locked one did"
    return SamebitsError(message, slug="lock-run-failed")


def _variables(recipe: Recipe) -> dict[str, str]:
    """Return the variables of a run, with those of its control and interventions."""
    environ = {**_environ(recipe.without), **recipe.environment}
    plan = combine(recipe.interventions, recipe.control, environ)
    return {**recipe.environment, **plan.environment}


def _environ(without: frozenset[str]) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in without}


@contextmanager
def unset(names: frozenset[str]) -> Iterator[None]:
    """Take variables away from what a child process inherits."""
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(before)


def explained(recipe: Recipe) -> Verification:
    """Verify a recipe: run it until two runs differ, and explain the difference.

    Raises:
        SamebitsError: the script cannot be run.
        KeyboardInterrupt: by Ctrl-C before there is a verdict.
    """
    before = Path.cwd()
    os.chdir(recipe.folder)
    try:
        return verify(
            VerifyRequest(
                recipe.target,
                recipe.records / "verify",
                steps=recipe.max_steps,
                control=recipe.control,
                interventions=recipe.interventions,
                environment=recipe.environment,
                output="stderr",
                runs=_RUNS,
            )
        )
    finally:
        os.chdir(before)


def check_script(recipe: Recipe, name: str, lock: str) -> None:
    """Refuse an entry whose script is not there.

    Raises:
        SamebitsError: `lock-script`.
    """
    script = recipe.target.script
    if script is not None and not os.path.exists(os.path.join(recipe.folder, script)):
        message = (
            f"the entry {name} of {lock} is a lock of {script}, which is not in {recipe.folder}; expected "
            "the lock file beside the code that it was made with. If the script is gone for good, delete "
            f"the [run.{name}] tables of the file"
        )
        raise SamebitsError(message, slug="lock-script")
