"""The options of `%%samebits`: what the words after it ask for."""

from __future__ import annotations

import argparse
import contextlib
import io
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits.cli.command import did_you_mean
from samebits.cli.options import add_control_options, control_of
from samebits.cli.script_parser import USAGE_SLUG, CommandParser, whole_number
from samebits.errors import SamebitsError
from samebits.verification.repeated_calls import CallsRequest

if TYPE_CHECKING:
    from samebits.switches.switch import Control

_VERIFY, _RUN = "verify", "run"
_HELP = """%%samebits verify [options]   run the cell again and compare the runs bit for bit
%%samebits run [options]      run the cell once, with seeds and switches under control

`%%samebits verify --help` and `%%samebits run --help` list the options."""


@dataclass(frozen=True)
class Help:
    """The user asks for help.

    Args:
        text: is shown.
    """

    text: str


@dataclass(frozen=True)
class RunRequest:
    """A cell is to run under control.

    Args:
        control: the control.
    """

    control: Control


class _MagicParser(CommandParser):
    """A parser of the words after a magic; defaults of commands are not its own."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """See `argparse`."""
        return argparse.ArgumentParser.parse_known_args(self, args, namespace)


def parse(line: str) -> CallsRequest | RunRequest | Help:
    """Read the words after `%%samebits`.

    Args:
        line: the rest of that line.

    Raises:
        SamebitsError: they are wrong; `usage`, and what `control_of` raises.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise SamebitsError(f"`%%samebits {line.strip()}`: {error}", slug=USAGE_SLUG) from None
    name = words[0] if words else ""
    if name in ("-h", "--help"):
        return Help(_HELP)
    if name not in (_VERIFY, _RUN):
        found = f"{name!r}{did_you_mean(name, (_VERIFY, _RUN))}" if name else "nothing"
        message = f"expected `verify` or `run` after %%samebits, found {found}; see `%samebits --help`"
        raise SamebitsError(message, slug=USAGE_SLUG)
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        try:
            return _verification(words[1:]) if name == _VERIFY else _controlled(words[1:])
        except SystemExit:  # `--help` was shown
            return Help(shown.getvalue())


def _verification(words: list[str]) -> CallsRequest:
    parser = _MagicParser(
        prog=f"%%samebits {_VERIFY}",
        description="Run the cell again from the state in which it began, and compare the runs bit for bit.",
    )
    parser.add_argument(
        "--runs", type=whole_number(2), default=2, metavar="N", help="compare N runs (default: 2)"
    )
    parser.add_argument(
        "--state-only",
        action="store_true",
        help="only what is trained, saved or left in tensors and arrays counts, not plain numbers",
    )
    parser.add_argument(
        "--same-generators",
        action="store_true",
        help="begin each run with the generators as they are now, so that a seed of an earlier cell counts",
    )
    add_control_options(parser)
    options = parser.parse_args(words)
    return CallsRequest(
        "the cell", options.runs, control_of(options), options.state_only, options.same_generators
    )


def _controlled(words: list[str]) -> RunRequest:
    parser = _MagicParser(
        prog=f"%%samebits {_RUN}", description="Run the cell once under control, and say what was controlled."
    )
    add_control_options(parser)
    control = control_of(parser.parse_args(words))
    if control is None:
        message = "%%samebits run needs to know what to control; give --seed N, --deterministic or --portable"
        raise SamebitsError(message, slug=USAGE_SLUG)
    return RunRequest(control)
