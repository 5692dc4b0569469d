"""The entry point: it picks the command, and it alone prints errors."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING

from samebits._runtime.package import __version__
from samebits.cli import internal_error
from samebits.cli.command import did_you_mean, summary
from samebits.cli.defaults import listed
from samebits.cli.ending import Ending
from samebits.cli.left_behind import is_anything_kept
from samebits.cli.registry import COMMANDS, command_named
from samebits.cli.script_parser import CommandParser
from samebits.cli.terminal import write
from samebits.cli.unknown_variables import unknown_variables
from samebits.errors import EXIT_NOT_JUDGED, SamebitsError, pointer
from samebits.executors.catalogue import worker_rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.cli.command import Command

_EPILOG = """\
examples:
  samebits verify train.py --epochs 1    # the same bits twice? if not, why?
  samebits verify -m mypackage.train
  samebits run train.py && samebits show .samebits/train-1.sbr

Everything after SCRIPT is passed to the script. `samebits COMMAND --help` explains a command.
exit status: 0 identical, 1 different, 2 could not judge, 3 internal error."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: the words after `samebits`; those of the process if None.

    Returns:
        the exit status: of `samebits.errors`, or of the script for `run`.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    _replace_closed_streams()
    ending = Ending(own_process=arguments is None)
    try:
        with ending:
            status = _dispatch(words, ending, own_process=arguments is None)
            sys.stdout.flush()
    except SamebitsError as error:
        return _report(str(error), error.slug)
    except KeyboardInterrupt:
        return _interrupted(ending)
    except BrokenPipeError:
        _silence_stdout()
        return 128 + getattr(signal, "SIGPIPE", 13)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _report(f"{where}{error.strerror or error}", "system")
    except Exception:  # noqa: BLE001 - a bug in samebits; Python's status for a traceback means *different* here
        return internal_error.report(traceback.format_exc())
    return status


def _replace_closed_streams() -> None:
    """Open what the caller closed (`>&-`); a child still finds it closed, as in bare Python.

    The numbers stay in use, so that no other file gets one of them and is passed on in its place.
    """
    for number in range(3):
        if not _is_open(number):
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free; it is not inherited
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for the process


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _dispatch(words: list[str], ending: Ending, *, own_process: bool) -> int:
    if words and words[0] in COMMANDS:
        return _run(command_named(words[0]), words[1:], ending, own_process=own_process)
    parser = _parser()
    options = parser.parse_args(words[:1])
    if options.command is None:
        parser.print_help()
        return EXIT_NOT_JUDGED
    meant = did_you_mean(options.command, list(COMMANDS))
    if options.command.endswith((".py", ".ipynb")):
        meant = f" (did you mean `samebits verify {options.command}`?)"
    message = f"no command named {options.command!r}{meant}; expected one of {', '.join(COMMANDS)}"
    raise SamebitsError(message, slug="usage")


def _run(command: Command, words: list[str], ending: Ending, *, own_process: bool) -> int:
    options = command.parse(words)
    options.own_process = own_process
    rank = worker_rank(getattr(options, "executor", None))
    if rank is not None:
        from samebits.executors.rank_worker import serve_launch  # few processes need it

        return serve_launch(rank)
    for line in unknown_variables(command.name):
        write(f"samebits: {line}", sys.stderr)
    if options.defaults:
        write(f"samebits: defaults: {listed(options.defaults)}", sys.stderr)
    try:
        return command.run(options)
    except KeyboardInterrupt:
        ending.keeps = is_anything_kept(options)
        raise
    except OSError:
        raise
    except Exception as error:
        if command.has_json_errors and options.json:  # a program that reads JSON gets JSON, whatever happens
            print(_as_json(command, error))
        raise


def _as_json(command: Command, error: Exception) -> str:
    """Return the JSON object of a command that could not judge."""
    from samebits.report import json as json_report  # which imports the comparison

    failure = "" if isinstance(error, SamebitsError) else traceback.format_exc()
    message = f"internal error: {type(error).__name__}: {error}" if failure else str(error)
    render = getattr(command, "render_error", None)
    return json_report.render_error(message, failure) if render is None else str(render(message))


def _parser() -> CommandParser:
    lines = [f"  {name:13}{summary(command_named(name))}" for name in COMMANDS]
    parser = CommandParser(
        prog="samebits",
        usage="samebits COMMAND [options]",
        description="Prove that a PyTorch script gives the same bits twice,\n"
        "or find the first operation that differed.\n\ncommands:\n" + "\n".join(lines),
        epilog=_EPILOG,
    )
    parser.add_argument(
        "--version", action="version", version=f"samebits {__version__}", help="show the version and exit"
    )
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    return parser


def _report(message: str, slug: str) -> int:
    sys.stdout.flush()
    line = " ".join(message.split())  # one line, whatever a file name contains
    write(f"samebits: {line}\n{pointer(slug)}", sys.stderr)
    return EXIT_NOT_JUDGED


def _interrupted(ending: Ending) -> int:
    kept = "; what was recorded so far is kept" if ending.keeps else ""
    print(f"samebits: {ending.words}{kept}", file=sys.stderr)
    return ending.status


def _silence_stdout() -> None:
    """Avoid a second error at exit, when the reader is gone (`samebits show | head`)."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
