"""Runs the script in fresh processes and records it; `--stress` changes in each what must not matter.

With `--stress`, a few runs are enough to bring out a latent nondeterminism.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._runtime.address_layout import can_fix_layout
from samebits._text.variable_names import PADDING
from samebits.errors import SamebitsError
from samebits.recording.closing import read_info
from samebits.recording.launch import Launch, deliver, launch_all
from samebits.recording.supervision import CHILD_GRACE_S
from samebits.records.creation import finalize
from samebits.switches.table import holds_layout
from samebits.verification._concurrency import APART_S
from samebits.verification.results import Purpose, ScriptRun, Stress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from samebits.comparison.environments import FactDifference
    from samebits.executors.jobs import Executor
    from samebits.recording.launch import Outcome
    from samebits.recording.runner import Target
    from samebits.recording.settings import RecordingSettings
    from samebits.records.events import RunInfo
    from samebits.verification.isolation import StandardInput


_STRESS_VARIABLES = ("PYTHONHASHSEED", "MALLOC_PERTURB_", PADDING)
_FILL_BYTES = (0x55, 0xAA, 0x33, 0xCC, 0x0F, 0xF0)


@dataclass(frozen=True)
class Perturbation:
    """The changes that one run gets and another does not.

    Args:
        environment: environment variables.
        fixed_layout: switch address space randomisation off.
        scheduling_noise: seed of the thread that disturbs scheduling; 0 is off.
        stress: what `--stress` chose of these; None without it.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    fixed_layout: bool = False
    scheduling_noise: int = 0
    stress: Stress | None = None


NONE = Perturbation()


def stress(run: int, environment: Mapping[str, str] = os.environ) -> Perturbation:
    """Return the perturbation of run number `run`, from 0; it is always the same for one number.

    A hash seed that the user has set is left alone.
    """
    fill = _FILL_BYTES[run % len(_FILL_BYTES)]
    padding = 17 + (run * 1111) % 4093  # moves the stack, which starts below the environment
    changes = {PADDING: "x" * padding}
    hash_seed = None
    if environment.get("PYTHONHASHSEED", "random") in ("", "random"):
        hash_seed = run + 1
        changes["PYTHONHASHSEED"] = str(hash_seed)
    uses_fill = sys.platform == "linux"  # a glibc setting; other C libraries ignore it
    if uses_fill:
        changes["MALLOC_PERTURB_"] = str(fill)
    fixed = run % 2 == 0 and can_fix_layout()
    chosen = Stress(hash_seed, padding, run + 1, fill if uses_fill else None, fixed)
    return Perturbation(changes, fixed, scheduling_noise=run + 1, stress=chosen)


def is_of_stress(fact: FactDifference) -> bool:
    """Tell whether a difference between the environments of two runs is one that `stress` makes."""
    if fact.path == ("variables",):
        return fact.entry in _STRESS_VARIABLES
    return fact.path == ("python", "hash_seed")


@dataclass(frozen=True)
class Script:
    """The script that is run each time.

    Args:
        target: the script or module and its arguments.
        output: where its standard output goes: `inherit`, `stderr` or `nothing`.
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
    purpose: Purpose = Purpose.COMPARE
    perturbation: Perturbation = NONE


def run_jobs(jobs: Sequence[Job], executor: Executor | None = None) -> tuple[ScriptRun, ...]:
    """Run a script in fresh processes, all at the same time, and record it; they begin `APART_S` apart.

    Args:
        jobs: the runs.
        executor: makes them elsewhere: runs to be compared each in its own job, those that explain a
            difference in one job, so that it is none of two machines. They get no standard input. None for
            this machine.

    Returns:
        What became of each; their seconds are those until the last of them had ended.

    Raises:
        KeyboardInterrupt: this program was told to end, by Ctrl-C or another signal; the records are kept.
    """
    if executor is not None:
        return _run_elsewhere(jobs, executor)
    started = time.monotonic()
    with ExitStack() as inputs:
        outcomes = launch_all([_launch(job, inputs) for job in jobs], APART_S)
    seconds = time.monotonic() - started
    runs = tuple(_script_run(job, outcome, seconds) for job, outcome in zip(jobs, outcomes, strict=True))
    deliver(outcomes[0])  # each outcome has the signal that this program got
    if any(signal.SIGINT in (outcome.signal, outcome.status - 128) for outcome in outcomes):
        raise KeyboardInterrupt
    return runs


def _run_elsewhere(jobs: Sequence[Job], executor: Executor) -> tuple[ScriptRun, ...]:
    from samebits.executors.launching import launch_in_jobs

    requests = [_launch(replace(job, script=replace(job.script, stdin=None)), None) for job in jobs]
    explaining = any(job.purpose != Purpose.COMPARE for job in jobs)
    made = launch_in_jobs(executor, requests, APART_S, one_machine=explaining)
    return tuple(
        replace(_script_run(job, each.outcome, each.seconds), machine=each.machine)
        for job, each in zip(jobs, made, strict=True)
    )


def _launch(job: Job, inputs: ExitStack | None) -> Launch:
    script, perturbation = job.script, job.perturbation
    stdin = None
    if script.stdin is not None and inputs is not None:
        stdin = inputs.enter_context(script.stdin.for_run())
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


def _script_run(job: Job, outcome: Outcome, seconds: float) -> ScriptRun:
    info = _close_record(Path(job.settings.record), outcome)
    run = ScriptRun(job.purpose, job.settings.record, outcome.status, seconds, timed_out=outcome.timed_out)
    return replace(run, stress=job.perturbation.stress, info=info)


def _close_record(record: Path, outcome: Outcome) -> RunInfo | None:
    """Read the facts of the run from its record; first close the record if its writer did not.

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
