"""Entry point: picks the command; the one place where errors are printed."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

import samebits
from samebits.cli.command import summary
from samebits.cli.compare import CompareCommand
from samebits.cli.cost import CostCommand
from samebits.cli.doctor import DoctorCommand
from samebits.cli.portable_ops import PortableOpsCommand
from samebits.cli.resume_check import ResumeCheckCommand
from samebits.cli.run import RunCommand
from samebits.cli.script_parser import CommandParser
from samebits.cli.show import ShowCommand
from samebits.cli.spread import SpreadCommand
from samebits.cli.terminal import write
from samebits.cli.verify import VerifyCommand
from samebits.errors import EXIT_NOT_JUDGED, SamebitsError
from samebits.report import json as json_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.cli.command import Command

_COMMANDS: tuple[Command, ...] = (
    VerifyCommand(),
    RunCommand(),
    CompareCommand(),
    ShowCommand(),
    CostCommand(),
    DoctorCommand(),
    SpreadCommand(),
    ResumeCheckCommand(),
    PortableOpsCommand(),
)
_EPILOG = """\
examples:
  samebits verify train.py --epochs 1    # the same bits twice? if not, why?
  samebits verify -m mypackage.train
  samebits run train.py && samebits show .samebits/train-1.sbr

Everything after SCRIPT belongs to the script. Each command has its own --help.
exit status: 0 identical, 1 different, 2 could not judge."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: the words after `samebits`; those of the process if None.

    Returns:
        the exit status: of `samebits.errors`, or of the script for `run`.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = _dispatch(words)
        sys.stdout.flush()
    except SamebitsError as error:
        return _report(str(error), error.slug)
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:
        _silence_stdout()
        return 128 + signal.SIGPIPE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _report(f"{where}{error.strerror or error}", "system")
    return status


def _dispatch(words: list[str]) -> int:
    for command in _COMMANDS:
        if words[:1] == [command.name]:
            return _run(command, words[1:])
    parser = _parser()
    options = parser.parse_args(words[:1])
    if options.command is None:
        parser.print_help()
        return EXIT_NOT_JUDGED
    names = ", ".join(command.name for command in _COMMANDS)
    message = f"no command named {options.command!r}; expected one of {names}"
    if options.command.endswith(".py"):
        message += f" (`samebits verify {options.command}`?)"
    raise SamebitsError(message, slug="usage")


def _run(command: Command, words: list[str]) -> int:
    options = command.parse(words)
    try:
        return command.run(options)
    except SamebitsError as error:
        if command.judges and options.json:  # who reads JSON gets JSON, whatever happens
            render = getattr(command, "render_error", json_report.render_error)
            print(render(str(error)))
        raise


def _parser() -> CommandParser:
    lines = [f"  {command.name:13}{summary(command)}" for command in _COMMANDS]
    parser = CommandParser(
        prog="samebits",
        usage="samebits COMMAND [options]",
        description="Proves that a PyTorch script gives the same bits twice,\n"
        "or names the first operation that differed.\n\ncommands:\n" + "\n".join(lines),
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"samebits {samebits.__version__}")
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    return parser


def _report(message: str, slug: str) -> int:
    sys.stdout.flush()
    line = " ".join(message.split())  # one line, whatever a file name contains
    write(f"samebits: {line}\nsee docs/messages.md#{slug}", sys.stderr)
    return EXIT_NOT_JUDGED


def _interrupted() -> int:
    print("samebits: interrupted; what was recorded so far is kept", file=sys.stderr)
    return 128 + signal.SIGINT


def _silence_stdout() -> None:
    """The reader went away (`samebits show | head`): no second error when the interpreter flushes at exit."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
