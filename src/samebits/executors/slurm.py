"""Jobs of Slurm, by `submitit`: each call is one batch job; results come through the shared folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.errors import SamebitsError
from samebits.executors.jobs import lost
from samebits.recording.naming import DEFAULT_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FOLDER = DEFAULT_FOLDER / "jobs"
# submitit's own parameters; all others are those of sbatch and begin with `slurm_` there.
_GENERAL = ("timeout_min", "mem_gb", "cpus_per_task", "gpus_per_node")
_CLUSTER = "cluster"


class SlurmExecutor:
    """Submits each call to Slurm.

    Args:
        options: of sbatch (`partition`, `constraint`, `account`, `time` …), or submitit's general ones;
            `cluster=local` makes the jobs here as processes, to try it without Slurm.

    Raises:
        SamebitsError: submitit is not installed, or there is no Slurm (`executor-unavailable`); it does not
            know an option (`usage`).
    """

    shares_files = True
    has_folder = True

    def __init__(self, options: Mapping[str, str]) -> None:
        try:
            import submitit
        except ImportError:
            message = "--executor slurm needs submitit; install it with: pip install 'samebits[slurm]'"
            raise SamebitsError(message, slug="executor-unavailable") from None
        parameters = {_parameter(name): _value(text) for name, text in options.items() if name != _CLUSTER}
        try:
            _FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)  # it has copies of records for a while
            self._executor = submitit.AutoExecutor(folder=_FOLDER, cluster=options.get(_CLUSTER, "slurm"))
            self._executor.update_parameters(slurm_job_name="samebits", **parameters)
        except RuntimeError as error:
            message = (
                f"there is no Slurm here: {error} Expected srun and sbatch on the path: start this on a "
                "login node, or leave --executor out"
            )
            raise SamebitsError(message, slug="executor-unavailable") from None
        except OSError as error:
            message = f"cannot make {_FOLDER}: {error.strerror}; expected a working folder with room"
            raise SamebitsError(message, slug="record-unwritable") from None
        except (NameError, TypeError, ValueError, AssertionError) as error:
            message = f"--executor-option: submitit refuses it: {error}; expected options of sbatch"
            raise SamebitsError(" ".join(message.split()), slug="usage") from None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> SlurmJob:
        """See `Executor`."""
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        try:
            return SlurmJob(self._executor.submit(_answer, function, *arguments))
        except (FailedJobError, FailedSubmissionError, OSError) as error:
            reason = " ".join(str(error).split())
            message = (
                f"Slurm took no job: {reason}; expected sbatch to accept the values of --executor-option"
            )
            raise SamebitsError(message, slug="executor-job") from None

    def close(self) -> None:
        """See `Executor`; there is nothing to leave."""


class SlurmJob:
    """A batch job.

    Args:
        job: submitit's.
    """

    def __init__(self, job: Any) -> None:
        self._job = job

    @property
    def name(self) -> str:
        """See `Job`."""
        return f"job {self._job.job_id} of Slurm"

    def is_done(self) -> bool:
        """See `Job`."""
        return bool(self._job.done())

    def result(self) -> Any:
        """See `Job`."""
        from submitit.core.utils import FailedJobError, UncompletedJobError

        try:
            result = self._job.result()
        except FailedJobError as error:  # a subclass of the other
            lines = [line.strip() for line in str(error).splitlines() if line.strip(" -")]
            advice = f"{self._job.paths.stderr} has the whole of it."
            raise lost(self.name, lines[-1] if lines else "it raised an error", advice) from None
        except UncompletedJobError:
            advice = f"{self._job.paths.stderr} has what it printed; `sacct -j {self._job.job_id}` says more."
            raise lost(self.name, f"its state is {self._job.state}", advice) from None
        for path in (self._job.paths.result_pickle, self._job.paths.submitted_pickle):
            path.unlink(missing_ok=True)
        if isinstance(result, SamebitsError):
            raise result
        return result

    def cancel(self) -> None:
        """See `Job`."""
        self._job.cancel(check=False)


def _answer(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, in the job; an error of samebits is an answer: submitit would keep its text only."""
    try:
        return function(*arguments)
    except SamebitsError as error:
        return error


def _parameter(name: str) -> str:
    plain = name.replace("-", "_")
    return plain if plain in _GENERAL or plain.startswith("slurm_") else f"slurm_{plain}"


def _value(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text
