"""Running the script once, recorded, in a fresh process."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.determinism.switches import holds_layout
from samebits.errors import SamebitsError
from samebits.recording.farewell import read_info
from samebits.recording.launch import Launch, deliver, launch_all
from samebits.recording.store import finalize
from samebits.recording.supervision import CHILD_GRACE_S
from samebits.verification.perturbation import NONE, Perturbation
from samebits.verification.results import ScriptRun
from samebits.verification.room import APART_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from samebits.recording.events import RunInfo
    from samebits.recording.launch import Outcome
    from samebits.recording.runner import Target
    from samebits.recording.settings import RecordingSettings
    from samebits.verification.stdin import StandardInput


@dataclass(frozen=True)
class Script:
    """What is run each time.

    Args:
        target: the script or module and its arguments.
        output: where its standard output goes: `inherit` or `stderr`.
        environment: variables beside the user's own.
        stdin: gives each run its standard input; None hands on this program's own.
        limit_s: seconds after which a run is ended; None for no limit.
        folder: its working folder; None for this program's own.
    """

    target: Target
    output: str = "inherit"
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: StandardInput | None = None
    limit_s: float | None = None
    folder: str | None = None


@dataclass(frozen=True)
class Job:
    """One run to be made.

    Args:
        script: what to run.
        settings: how it is recorded.
        purpose: for the report.
        perturbation: what `--stress` changes in this run.
    """

    script: Script
    settings: RecordingSettings
    purpose: str = "compare"
    perturbation: Perturbation = NONE


def run_jobs(jobs: Sequence[Job]) -> tuple[ScriptRun, ...]:
    """Run a script in fresh processes, all at the same time, and record it; they begin `APART_S` apart.

    Args:
        jobs: the runs.

    Returns:
        What became of each; their seconds are those until the last of them had ended.

    Raises:
        KeyboardInterrupt: this program was told to end, by Ctrl-C or another signal; the records are kept.
    """
    started = time.monotonic()
    with ExitStack() as inputs:
        outcomes = launch_all([_launch(job, inputs) for job in jobs], APART_S)
    seconds = time.monotonic() - started
    runs = tuple(_made(job, outcome, seconds) for job, outcome in zip(jobs, outcomes, strict=True))
    deliver(outcomes[0])  # what this program was told, all of them say
    if any(signal.SIGINT in (outcome.signal, outcome.status - 128) for outcome in outcomes):
        raise KeyboardInterrupt
    return runs


def _launch(job: Job, inputs: ExitStack) -> Launch:
    script, perturbation = job.script, job.perturbation
    stdin = inputs.enter_context(script.stdin.for_run()) if script.stdin is not None else None
    variables = {**script.environment, **perturbation.environment}
    fixed = perturbation.fixed_layout or holds_layout(job.settings.control)
    return Launch(
        script.target,
        job.settings.to_json(),
        variables,
        output=script.output,
        stdin=stdin,
        limit_s=script.limit_s,
        folder=script.folder,
        grace_s=CHILD_GRACE_S,
        fixed_layout=fixed,
    )


def _made(job: Job, outcome: Outcome, seconds: float) -> ScriptRun:
    info = close_record(Path(job.settings.record), outcome)
    run = ScriptRun(job.purpose, job.settings.record, outcome.status, seconds, timed_out=outcome.timed_out)
    return replace(run, perturbation=job.perturbation.description, info=info)


def close_record(record: Path, outcome: Outcome) -> RunInfo | None:
    """What the record says of the run; a record whose writer did not close it is made a single file first.

    Args:
        record: its path.
        outcome: how the run ended.

    Returns:
        None when there is nothing that can be read.
    """
    info = read_info(record)
    if info is None or info.status != "running":
        return info
    failure = info.failure or (f"killed by {_signal_name(outcome.signal)}" if outcome.signal else "")
    with suppress(SamebitsError):  # the disk is full: it stays as it is
        finalize(record, exit_status=outcome.status, failure=failure)
    return read_info(record)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
