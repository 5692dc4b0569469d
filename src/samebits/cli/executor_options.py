"""The options by which runs are made on other machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.cli.options import name_and_value
from samebits.errors import SamebitsError
from samebits.executors.catalogue import ExecutorName, executor_named

if TYPE_CHECKING:
    import argparse
    from contextlib import AbstractContextManager

    from samebits.executors.jobs import Executor


def add_executor_options(parser: argparse._ActionsContainer) -> None:
    """Add `--executor` and `--executor-option`."""
    parser.add_argument(
        "--executor",
        choices=[str(name) for name in ExecutorName],
        default=str(ExecutorName.LOCAL),
        help="make the runs here (default), in jobs of Slurm, in tasks of Ray, or on the ranks of the "
        "torchrun that starts this command",
    )
    parser.add_argument(
        "--executor-option",
        action="append",
        default=[],
        type=_option,
        metavar="NAME=VALUE",
        help="an option of sbatch (partition=gpu), or num_cpus, num_gpus and address of Ray (repeatable)",
    )


def _option(text: str) -> tuple[str, str]:
    """Parse the value of `--executor-option`."""
    return name_and_value(text, "NAME=VALUE")


def is_elsewhere(options: argparse.Namespace) -> bool:
    """Tell whether runs are made by something else than this machine."""
    return bool(options.executor != ExecutorName.LOCAL)


def chosen_executor(options: argparse.Namespace) -> AbstractContextManager[Executor | None]:
    """Return the executor that the options name, for a block.

    Raises:
        SamebitsError: options without an executor; `usage`. What `executor_named` raises.
    """
    if options.executor_option and not is_elsewhere(options):
        message = "--executor-option does nothing without --executor; give --executor slurm or ray too"
        raise SamebitsError(message, slug="usage")
    return executor_named(ExecutorName(options.executor), dict(options.executor_option))
