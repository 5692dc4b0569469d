"""The process of one seed: of this machine, or in a job."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Protocol

from samebits._runtime.address_layout import fixed_layout
from samebits._runtime.processes import KILL, ended_with_parent
from samebits._text.files import open_to_write
from samebits.commands.spread.request import environment_for, settings_for, target_for
from samebits.executors.launching import submit_run
from samebits.executors.shipping import deliver
from samebits.recording.launch import Launch, child_command, not_started
from samebits.recording.settings import ENVIRONMENT_NAME
from samebits.recording.supervision import CHILD_GRACE_S
from samebits.switches.table import holds_layout

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from samebits.commands.spread.request import SpreadRequest
    from samebits.executors.jobs import Executor
    from samebits.executors.shipping import Delivery

_POLL_S = 0.02


class SeedProcess(Protocol):
    """A run in progress."""

    def poll(self) -> int | None:
        """Return its exit status as a shell shows it, with its files in their places; None while it runs.

        Raises:
            SamebitsError: it was in a job that gave no result; `executor-job`.
        """

    @property
    def seconds(self) -> float:
        """How long it has run, or ran."""

    def end(self, *, kill: bool) -> None:
        """Tell it to end."""


class LocalProcess:
    """A process of this machine.

    Args:
        seed: of the run.
        request: the spread.
        files: path of its files, without a suffix.

    Raises:
        SamebitsError: the interpreter cannot be started; `child-start`.
    """

    def __init__(self, seed: int, request: SpreadRequest, files: Path) -> None:
        settings = settings_for(seed, request, files)
        environment = {**os.environ, **environment_for(request), ENVIRONMENT_NAME: settings.to_json()}
        fixed = fixed_layout(fixed=holds_layout(request.control))
        words = child_command(target_for(seed, request))
        with fixed, open_to_write(f"{files}.out") as output, open_to_write(f"{files}.err") as errors:
            try:
                self._process = subprocess.Popen(
                    words,
                    env=environment,
                    stdin=subprocess.DEVNULL,  # several scripts cannot ask at the same time
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,  # Ctrl-C comes here only; a run is ended with all its processes
                    preexec_fn=ended_with_parent(),  # noqa: PLW1509 - it calls the kernel and nothing else
                )
            except OSError as error:
                raise not_started(words[0], error) from None
        self._started = time.monotonic()

    def poll(self) -> int | None:
        """See `SeedProcess`."""
        status = self._process.poll()
        return status if status is None or status >= 0 else 128 - status

    @property
    def seconds(self) -> float:
        """See `SeedProcess`."""
        return time.monotonic() - self._started

    def end(self, *, kill: bool) -> None:
        """See `SeedProcess`."""
        if self._process.poll() is not None:
            return
        number = KILL if kill else signal.SIGTERM
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.send_signal(number)
            else:
                os.killpg(self._process.pid, number)


class JobProcess:
    """A run in a job.

    Args:
        seed: of the run.
        request: the spread.
        files: path of its files, without a suffix.
        executor: makes the job.

    Raises:
        SamebitsError: the scheduler does not take it; `executor-job`.
    """

    def __init__(self, seed: int, request: SpreadRequest, files: Path, executor: Executor) -> None:
        self._files = files
        self._launch = Launch(
            target_for(seed, request),
            settings_for(seed, request, files).to_json(),
            environment_for(request),
            grace_s=CHILD_GRACE_S,
            fixed_layout=holds_layout(request.control),
        )
        self._started = time.monotonic()
        self._job = submit_run(executor, self._launch)
        self._delivery: Delivery | None = None

    def poll(self) -> int | None:
        """See `SeedProcess`."""
        if self._delivery is None and self._job.is_done():
            self._take(self._job.result()[0])
        return None if self._delivery is None else self._delivery.outcome.status

    def _take(self, delivery: Delivery) -> None:
        deliver(delivery, self._launch)
        for suffix, printed in ((".out", delivery.stdout), (".err", delivery.stderr)):
            with open_to_write(f"{self._files}{suffix}") as file:
                file.write(printed)
        self._delivery = delivery

    @property
    def seconds(self) -> float:
        """See `SeedProcess`; without the time in the queue once it ended."""
        return time.monotonic() - self._started if self._delivery is None else self._delivery.seconds

    def end(self, *, kill: bool) -> None:  # noqa: ARG002 - schedulers know one way
        """See `SeedProcess`."""
        if self._delivery is None:
            with contextlib.suppress(Exception):  # the scheduler's: the other jobs are to be cancelled too
                self._job.cancel()


def end_all(processes: Sequence[SeedProcess]) -> None:
    """End processes, at once where they do not end by themselves within `CHILD_GRACE_S`."""
    for process in processes:
        process.end(kill=False)
    deadline = time.monotonic() + CHILD_GRACE_S
    own = [process for process in processes if isinstance(process, LocalProcess)]
    while any(process.poll() is None for process in own):
        if time.monotonic() > deadline:
            for process in own:
                process.end(kill=True)
        time.sleep(_POLL_S)
