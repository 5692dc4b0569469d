"""The executors by name."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from samebits._text.str_enum import StrEnum
from samebits.environment.distributed import rank_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from samebits.environment.distributed import RankFacts
    from samebits.executors.jobs import Executor


class ExecutorName(StrEnum):
    """Where runs are made."""

    LOCAL = "local"
    """As processes of this machine."""
    SLURM = "slurm"
    RAY = "ray"
    TORCHRUN = "torchrun"
    """As processes of the ranks that started this command."""


def worker_rank(name: str | None) -> RankFacts | None:
    """Return the rank of a process that makes runs of the command on rank 0; None for a command itself.

    Args:
        name: of the executor; None where the command has none.
    """
    facts = rank_facts() if name == ExecutorName.TORCHRUN else None
    return facts if facts is not None and facts.rank > 0 else None


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
    if name is ExecutorName.TORCHRUN:
        from samebits.executors.torchrun import TorchrunExecutor

        return TorchrunExecutor(options)
    return None
