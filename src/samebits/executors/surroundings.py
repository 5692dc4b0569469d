"""What a job takes over from the command that submits it: the working folder and the user's variables."""

from __future__ import annotations

import os
import platform
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits._text.printable import printable
from samebits.environment.snapshot import numeric_variables
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# What a scheduler or the machine of a job gives: the job's own values count.
_OF_THE_JOB = ("SLURM", "SBATCH_", "SUBMITIT_", "RAY_", "CUDA_VISIBLE_", "HOSTNAME", "TMPDIR", "XDG_")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The surroundings of a command.

    Args:
        folder: its working folder.
        shares_files: whether a job sees that folder; else the working folder of the job is a copy of it.
        variables: of the environment, those that numeric libraries read; secrets are not among them. The
            others are what the scheduler gives the job: `sbatch` exports those of the command.
    """

    folder: str
    shares_files: bool
    variables: Mapping[str, str]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Give this process, which is that of a job, the folder and the variables.

        Raises:
            SamebitsError: the machine has no such folder; `executor-job`.
        """
        variables, folder = dict(os.environ), os.getcwd()
        if self.shares_files:
            _enter(self.folder)
        _set_environment(self._combined(variables))
        try:
            yield
        finally:
            os.chdir(folder)
            _set_environment(variables)

    def _combined(self, before: Mapping[str, str]) -> dict[str, str]:
        own = {name: value for name, value in before.items() if name.startswith(_OF_THE_JOB)}
        numeric = numeric_variables(before)  # a scheduler sets OMP_NUM_THREADS, which changes bits
        others = {name: value for name, value in before.items() if name not in numeric}
        return {**others, **self.variables, **own}


def _enter(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        message = (
            f"the job on {platform.node()} cannot work in {printable(folder)}: {error.strerror}; expected "
            "the working folder of the command there, on a shared disk or as a copy"
        )
        raise SamebitsError(message, slug="executor-job") from None


def surroundings(*, shares_files: bool) -> Surroundings:
    """Return the surroundings of this process.

    Args:
        shares_files: see `Surroundings`.
    """
    everything = dict(os.environ)
    # That function hides secrets and cuts long values: those are not sent.
    whole = {
        name: value for name, value in numeric_variables(everything).items() if value == everything[name]
    }
    kept = {name: value for name, value in whole.items() if not name.startswith(_OF_THE_JOB)}
    return Surroundings(os.getcwd(), shares_files, kept)


def _set_environment(variables: Mapping[str, str]) -> None:
    for name in [name for name in os.environ if name not in variables]:
        del os.environ[name]
    os.environ.update(variables)
