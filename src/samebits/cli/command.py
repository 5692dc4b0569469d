"""The interface of a command, and its help."""

from __future__ import annotations

import difflib
import inspect
import shutil
import textwrap
from typing import TYPE_CHECKING, Protocol

from samebits.environment.distributed import rank_facts
from samebits.errors import SamebitsError
from samebits.executors.catalogue import ExecutorName

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from samebits.cli.script_parser import CommandParser


class Command(Protocol):
    """One command; its class docstring is its help: a summary line, then the rest with examples.

    Args:
        name: what the user types.
        has_json_errors: with `--json` it prints JSON also where it fails.
    """

    name: str
    has_json_errors: bool

    def parser(self) -> CommandParser:
        """Return the parser of the words that follow the name of the command."""

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow the name of the command.

        Raises:
            SamebitsError: they are wrong; `usage`.
        """

    def run(self, options: argparse.Namespace) -> int:
        """Run the command.

        Args:
            options: from `parse`, and `own_process`: whether this process ends with the command.

        Returns:
            the exit status.
        """


def summary(command: Command) -> str:
    """Return the first line of a command's help."""
    return _documentation(command).split("\n", maxsplit=1)[0]


def help_texts(command: Command) -> dict[str, str]:
    """Return a command's name, its help before the options, and the examples after them, for its parser."""
    before, _, examples = _documentation(command).partition("\nExamples:\n")
    width = max(40, min(shutil.get_terminal_size((80, 24)).columns, 100)) - 2
    paragraphs = (textwrap.fill(paragraph, width) for paragraph in before.strip().split("\n\n"))
    return {
        "prog": f"samebits {command.name}",
        "description": "\n\n".join(paragraphs),
        "epilog": f"examples:\n{examples.rstrip()}" if examples else "",
    }


def _documentation(command: Command) -> str:
    return inspect.cleandoc(type(command).__doc__ or "")


def did_you_mean(typed: str, names: Iterable[str]) -> str:
    """Return ` (did you mean verify?)` for a misspelt name; empty if no name is similar."""
    near = difflib.get_close_matches(typed.lower(), names, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def refuse_rank(command: str, executor: str = ExecutorName.LOCAL) -> None:
    """Refuse a command that starts the script itself where a launcher has started one process for each rank.

    Args:
        command: its name.
        executor: that makes its runs; one of them takes the ranks.

    Raises:
        SamebitsError: this process is a rank; `rank-command`.
    """
    facts = rank_facts()
    if facts is None or executor == ExecutorName.TORCHRUN:
        return
    ranks = f" --nproc-per-node {facts.world_size}" if command == "verify" else ""
    message = (
        f"samebits {command} runs as rank {facts.rank} of {facts.world_size}, and each rank would start the "
        f"script again; expected `samebits {command}{ranks} SCRIPT`, without the launcher"
    )
    raise SamebitsError(message, slug="rank-command")
