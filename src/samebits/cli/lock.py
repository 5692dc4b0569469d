"""`samebits lock`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._text.masking import Masker
from samebits._text.printable import printable
from samebits.cli.command import help_texts, refuse_rank
from samebits.cli.options import (
    add_control_options,
    add_intervention_options,
    chosen_interventions,
    control_of,
    wants_progress,
)
from samebits.cli.script_parser import ScriptParser, whole_number
from samebits.cli.terminal import Phases, write
from samebits.commands.lock.checking import CheckOptions, make_entry, write_entries
from samebits.commands.lock.entry import LockEntry, own_command
from samebits.commands.lock.file import DEFAULT, LockFile, check_name, default_name, read_lock
from samebits.errors import EXIT_IDENTICAL, SamebitsError
from samebits.recording.naming import DEFAULT_FOLDER, target_name
from samebits.recording.unread_words import unread_text
from samebits.verification.preconditions import check_target

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from samebits.recording.runner import Target

_TRACE = 3  # steps


class LockCommand:
    """Write what a script gives, step by step, into a lock file.

    CI notices then when a change of the code changes the numbers. The script runs twice, and its first
    steps a third time; where the runs differ there is nothing to lock. The file is text: a digest and a few
    values for each step, and the environment that matters. `samebits check` compares with it, and says whose
    it is when the bits are others. Beside it goes a record of the operations of the first steps, from which
    `check` names the operation that another machine or another torch computes differently.

    Examples:
      samebits lock --seed 0 train.py --epochs 1
      samebits lock --seed 0 --portable train.py    # holds on every machine and release of torch
      samebits lock --name small --seed 0 --steps 20 -m mypackage.train
      samebits check
    """

    name = "lock"
    has_json_errors = False

    def parser(self) -> ScriptParser:
        """Return the parser of the words that follow `lock`."""
        parser = ScriptParser(
            **help_texts(self), usage="samebits lock [options] SCRIPT|-m MODULE [arguments of the script]"
        )
        parser.add_argument(
            "--lock", default=DEFAULT, metavar="PATH", help=f"the lock file (default: {DEFAULT})"
        )
        parser.add_argument("--name", metavar="NAME", help="of the entry (default: that of the script)")
        parser.add_argument(
            "--steps", type=whole_number(1), metavar="N", help="stop the script after N steps"
        )
        parser.add_argument(
            "--trace",
            type=whole_number(0),
            default=_TRACE,
            metavar="N",
            help=f"steps whose operations are kept beside the lock; 0 keeps none (default: {_TRACE})",
        )
        parser.add_argument(
            "--no-progress", action="store_true", help="do not show progress in the last row of the terminal"
        )
        add_control_options(parser, brief=True)
        add_intervention_options(parser)
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `lock`."""
        return self.parser().parse_command(arguments)

    def run(self, options: argparse.Namespace) -> int:
        """Run the script, and write the entry."""
        refuse_rank(self.name)
        check_target(options.target)
        _refuse_unfit(_command(options.target))
        name = check_name(options.name or default_name(target_name(options.target)))
        lock = _existing(Path(options.lock))
        entry = LockEntry(
            name=name,
            command=own_command(_command(options.target), options.lock),
            control=control_of(options),
            interventions=chosen_interventions(options),
            max_steps=options.steps,
            steps=0,
            rows=(),
            trace=options.trace,
        )
        _refuse_other(lock, entry)
        phases = Phases(sys.stderr)
        try:
            made = make_entry(entry, lock, check_options(options, phases))
        finally:
            phases.clear()
        write_entries(lock, [made])
        write(
            f"samebits: {made.entry.steps} steps of {name} are locked in {printable(str(lock.path))}",
            sys.stderr,
        )
        unread = unread_text(made.entry.environment)
        if unread:
            write(f"samebits: {unread}; a check cannot compare what has none", sys.stderr)
        return EXIT_IDENTICAL


def check_options(options: argparse.Namespace, phases: Phases, *, explain: bool = True) -> CheckOptions:
    """Return how the runs of an entry are made.

    Args:
        options: of `lock` or `check`.
        phases: shows what is about to run.
        explain: find out whose a mismatch is.
    """
    output = "stderr" if getattr(options, "json", False) else "inherit"
    records = DEFAULT_FOLDER / "lock"
    return CheckOptions(records, output, wants_progress(options), explain, phases)


def _existing(path: Path) -> LockFile:
    return read_lock(path) if os.path.lexists(path) else LockFile(path, {})


def _command(target: Target) -> tuple[str, ...]:
    if target.script is not None:
        return (target.script, *target.arguments)
    return ("-m", str(target.module), *target.arguments)


def _refuse_unfit(command: tuple[str, ...]) -> None:
    """Refuse arguments that a public text file must not or cannot hold.

    Raises:
        SamebitsError: `lock-secret`; they are no UTF-8 (`usage`).
    """
    if any(map(_is_no_text, command)):
        message = "an argument of the script is no UTF-8 text, and a lock file is text; expected UTF-8"
        raise SamebitsError(message, slug="usage")
    if Masker(command).command != command:
        message = (
            "an argument of the script looks like a secret, and a lock file is for everybody to read; "
            "expected secrets in environment variables"
        )
        raise SamebitsError(message, slug="lock-secret")


def _is_no_text(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return True
    return False


def _refuse_other(lock: LockFile, entry: LockEntry) -> None:
    """Refuse to replace the entry of another script.

    Raises:
        SamebitsError: `lock-exists`.
    """
    present, length = lock.entries.get(entry.name), 2 if entry.command[:1] == ("-m",) else 1
    if present is not None and present.command[:length] != entry.command[:length]:
        message = (
            f"{lock.path} has an entry {entry.name} already, of {present.test or present.command[0]}; "
            f"expected another --name for {entry.command[0]}"
        )
        raise SamebitsError(message, slug="lock-exists")
