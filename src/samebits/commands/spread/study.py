"""Runs the seeds that have not finished yet, and summarises all of them."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._text.printable import exit_text
from samebits.commands.spread._estimates import contrast, scipy_stats
from samebits.commands.spread._metrics import choose, common_metrics, measure
from samebits.commands.spread._outputs import failure_of, run_of
from samebits.commands.spread.remarks import Remark, RemarkCode, comparability, remarks
from samebits.commands.spread.seed_runs import (
    SeedRunner,
    changed_files,
    command_of,
    folder_of,
    load_run,
    save_run,
    write_index,
)
from samebits.commands.spread.summary import (
    Configuration,
    Contrast,
    ContrastReason,
    Failure,
    FailureCode,
    Spread,
)
from samebits.errors import SamebitsError
from samebits.verification.preconditions import check_target, check_writable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from samebits.commands.spread.request import SpreadRequest
    from samebits.commands.spread.seed_runs import Ended
    from samebits.commands.spread.summary import Measured, SeedRun
    from samebits.executors.jobs import Executor

_SAME_FAILURES = 2


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a configuration.

    Args:
        command: of the configuration.
        done: seeds that finished or failed, earlier ones included.
        total: seeds.
        running: seeds in progress.
        seconds: since the start.
    """

    command: tuple[str, ...]
    done: int
    total: int
    running: tuple[int, ...]
    seconds: float


def run_configuration(
    request: SpreadRequest,
    announce: Callable[[Progress], None] | None = None,
    executor: Executor | None = None,
) -> Configuration:
    """Run the seeds of a request that have not finished before. Where the user ends it, it has those so far.

    Args:
        request: the spread.
        announce: called with the progress now and then.
        executor: makes the runs elsewhere; None for this machine.

    Raises:
        SamebitsError: there is nothing to run (see `check_target`), its files cannot be written, or a job
            gives no result (`executor-job`).
    """
    check_target(request.target)
    folder = folder_of(request)
    check_writable(folder / "seed.sbr")
    write_index(folder, request)
    known, changed = ({}, ()) if request.fresh else _finished(folder, request.seeds)
    ongoing = _Ongoing(request, folder, dict(known), announce)
    waiting = [seed for seed in request.seeds if seed not in known]
    scipy_stats()  # imported before the runs: where the user ends them, there is no time for it
    started, interrupted = time.monotonic(), False
    try:
        if waiting:
            ongoing.run(waiting, executor)
    except KeyboardInterrupt:
        interrupted = True
    return Configuration(
        command=command_of(request),
        folder=str(folder),
        threads=request.threads,
        runs=tuple(ongoing.runs[seed] for seed in request.seeds if seed in ongoing.runs),
        failures=tuple(sorted(ongoing.failures, key=lambda failure: request.seeds.index(failure.seed))),
        reused=tuple(known),
        changed=changed,
        not_run=tuple(seed for seed in waiting if seed not in ongoing.ended),
        seconds=time.monotonic() - started,
        interrupted=interrupted,
    )


def _finished(folder: Path, seeds: Sequence[int]) -> tuple[dict[int, SeedRun], tuple[str, ...]]:
    """Return the runs that are still valid, and the changed source files that made others invalid."""
    saved = {seed: run for seed in seeds if (run := load_run(folder, seed)) is not None}
    changed = {seed: changed_files(run) for seed, run in saved.items()}
    valid = {seed: run for seed, run in saved.items() if not changed[seed]}
    return valid, tuple(sorted({path for paths in changed.values() for path in paths}))


class _Ongoing:
    """The seeds of one configuration, while they run."""

    def __init__(
        self,
        request: SpreadRequest,
        folder: Path,
        runs: dict[int, SeedRun],
        announce: Callable[[Progress], None] | None,
    ) -> None:
        self.runs = runs
        self.failures: list[Failure] = []
        self.ended: set[int] = set()
        self._request = request
        self._folder = folder
        self._announce = announce
        self._reused = len(runs)
        self._started = time.monotonic()

    def run(self, seeds: Sequence[int], executor: Executor | None) -> None:
        """Run these seeds, and save each as it finishes."""
        temporary = Path(tempfile.mkdtemp(prefix="running-", dir=self._folder))
        try:
            runner = SeedRunner(self._request, temporary, executor)
            # Closed at once where this is interrupted, so that no run goes on.
            with contextlib.closing(runner.run(seeds, go_on=self._go_on, tell=self._tell)) as runs:
                for ended in runs:
                    self._save(ended)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _save(self, ended: Ended) -> None:
        self.ended.add(ended.seed)
        failure = failure_of(ended)
        if failure is None:
            failure = self._read(ended)
        for suffix in (".out", ".err"):
            with contextlib.suppress(OSError):
                ended.files.with_suffix(suffix).replace(self._folder / f"{ended.files.name}{suffix}")
        ended.files.with_suffix(".sbr").unlink(missing_ok=True)
        if failure is not None:
            log = self._folder / f"{ended.files.name}.err"
            self.failures.append(dataclasses.replace(failure, log=str(log)))

    def _read(self, ended: Ended) -> Failure | None:
        """Save the results of a finished run; return a failure if they cannot be read."""
        try:
            run = run_of(ended, self._request.target.script)
        except (OSError, ValueError, SamebitsError) as error:
            return Failure(ended.seed, ended.status, FailureCode.UNREADABLE, str(error))
        self.runs[ended.seed] = run
        save_run(self._folder, run)
        return None

    def _go_on(self) -> bool:
        """Tell whether to start further seeds: not once two failed alike before any step and none finished.

        A run that fails later may have failed because of its seed.
        """
        reasons = [(failure.code, failure.text) for failure in self.failures if not failure.steps]
        return bool(self.runs) or len(reasons) < _SAME_FAILURES or len(set(reasons)) > 1

    def _tell(self, running: list[int]) -> None:
        if self._announce is None:
            return
        done = self._reused + len(self.ended)
        seconds = time.monotonic() - self._started
        command = command_of(self._request)
        self._announce(Progress(command, done, len(self._request.seeds), tuple(running), seconds))


def evaluate(configurations: Sequence[Configuration], metric: str | None = None, last: int = 1) -> Spread:
    """Return the results of one or two configurations.

    Args:
        configurations: one or two.
        metric: name of the metric; by default see `metrics.choose`.
        last: how many values at the end are averaged to the final value.

    Raises:
        SamebitsError: fewer than two seeds of a configuration finished (`spread-failed`), or they have no
            such metric (`metric`).
    """
    for configuration in configurations:
        _require_two(configuration)
    metrics = common_metrics([run for configuration in configurations for run in configuration.runs])
    chosen = choose(metrics, metric)
    measured = tuple(measure(configuration, chosen, last) for configuration in configurations)
    notes = [
        dataclasses.replace(remark, configuration=number)
        for number, one in enumerate(measured)
        for remark in remarks(one, last)
    ]
    compared = None
    if len(measured) > 1:
        notes += comparability(*configurations)
        compared = _contrast(*measured)
    notes += [] if scipy_stats() is not None else [Remark.of(RemarkCode.NO_SCIPY)]
    return Spread(
        metric=chosen,
        metrics=metrics,
        last=last,
        measured=measured,
        contrast=compared,
        notes=tuple(notes),
    )


def _contrast(first: Measured, second: Measured) -> Contrast:
    if first.same_bits or second.same_bits:
        n = len(first.finals), len(second.finals)
        return Contrast("cannot tell", ContrastReason.NO_EFFECT, n, paired=False)
    return contrast(first.finals, second.finals)


def _require_two(configuration: Configuration) -> None:
    if len(configuration.runs) > 1:
        return
    failures = configuration.failures
    command = " ".join(configuration.command)
    if not failures:
        message = f"{len(configuration.runs)} seed of {command} has finished; expected at least two seeds"
        raise SamebitsError(message, slug="spread-failed")
    first = failures[0]
    total = len(configuration.runs) + len(failures) + len(configuration.not_run)
    message = (
        f"{len(configuration.runs)} of {total} seeds of {command} finished, at least 2 are needed; seed "
        f"{first.seed} ended {exit_text(first.status)}{_AFTER_ENDED[first.code].format(first.text)} (see "
        f"{_shown(first.log)})"
    )
    if configuration.not_run:
        message += f"; {len(configuration.not_run)} more were not started"
    raise SamebitsError(message, slug="spread-failed")


_AFTER_ENDED = {
    FailureCode.SAID: ": {}",
    FailureCode.SILENT: " without a message",
    FailureCode.INCOMPLETE: ", but its record is incomplete",
    FailureCode.UNREADABLE: ", but its values cannot be read: {}",
}


def _shown(path: str) -> str:
    inside = os.path.relpath(path)
    return path if inside.startswith("..") else inside
