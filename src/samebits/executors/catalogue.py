"""The executors by name."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from samebits._text.str_enum import StrEnum

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from samebits.executors.jobs import Executor


class ExecutorName(StrEnum):
    """Where runs are made."""

    LOCAL = "local"
    """As processes of this machine."""
    SLURM = "slurm"
    RAY = "ray"


@contextmanager
def executor_named(name: ExecutorName, options: Mapping[str, str]) -> Iterator[Executor | None]:
    """Return an executor for a block; None for runs on this machine.

    Args:
        name: which.
        options: of the executor.

    Raises:
        SamebitsError: it cannot be used here; `executor-unavailable`.
    """
    executor = _made(name, options)
    try:
        yield executor
    finally:
        if executor is not None:
            executor.close()


def _made(name: ExecutorName, options: Mapping[str, str]) -> Executor | None:
    if name is ExecutorName.SLURM:
        from samebits.executors.slurm import SlurmExecutor

        return SlurmExecutor(options)
    if name is ExecutorName.RAY:
        from samebits.executors.ray_tasks import RayExecutor

        return RayExecutor(options)
    return None
