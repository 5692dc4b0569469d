"""What an executor is: it takes calls of functions, and makes each in a job on some machine."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_POLL_S = 0.2


class Job(Protocol):
    """One call in a job."""

    @property
    def name(self) -> str:
        """What the scheduler calls it, such as `job 4711 of Slurm`."""

    def is_done(self) -> bool:
        """Tell whether it ended, in whatever way."""

    def result(self) -> Any:
        """Return what the function returned; it ended. It is asked for once.

        Raises:
            SamebitsError: it failed, was cancelled or is lost (`executor-job`); or the function raised one.
        """

    def cancel(self) -> None:
        """Cancel it, without waiting; nothing happens where it ended."""


class Executor(Protocol):
    """Makes calls in jobs. It is closed at the end; jobs that go on are cancelled before."""

    @property
    def shares_files(self) -> bool:
        """Whether a job sees the files of this machine under the same paths."""

    @property
    def has_folder(self) -> bool:
        """Whether the machine of a job has the working folder under the same path, or a copy of the whole."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Job:
        """Call a function of an importable module in a job; arguments and result are pickled.

        Raises:
            SamebitsError: the scheduler does not take it; `executor-job`.
        """

    def close(self) -> None:
        """Leave the cluster."""


def results_of(jobs: Sequence[Job]) -> list[Any]:
    """Wait for jobs, and return what each function returned.

    All are cancelled where one fails, or where this program is told to end.

    Raises:
        SamebitsError: as `Job.result`.
        KeyboardInterrupt: by Ctrl-C, or another signal that ends the command.
    """
    results: dict[int, Any] = {}
    try:
        while len(results) < len(jobs):
            for number, job in enumerate(jobs):
                if number not in results and job.is_done():
                    results[number] = job.result()  # the others need not be waited for where this failed
            if len(results) < len(jobs):
                time.sleep(_POLL_S)
        return [results[number] for number in range(len(jobs))]
    except BaseException:
        cancel_all(jobs)
        raise


def cancel_all(jobs: Sequence[Job]) -> None:
    """Cancel jobs; a scheduler that fails at one does not keep the others."""
    for job in jobs:
        with suppress(Exception):
            job.cancel()


def lost(name: str, why: str, advice: str) -> SamebitsError:
    """Return the error of a job without a result.

    Args:
        name: of the job.
        why: what became of it.
        advice: what to look at, or to do.
    """
    return SamebitsError(
        f"{name} ended without a result ({why}); expected the record of a run. {advice}", slug="executor-job"
    )
