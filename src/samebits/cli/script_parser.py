"""Parse a command line that ends with the command line of a script."""

from __future__ import annotations

import argparse
import math
import re
from typing import TYPE_CHECKING, Any, NoReturn

from samebits._text.printable import printable_lines
from samebits.cli.defaults import apply_defaults, listed
from samebits.errors import SamebitsError
from samebits.recording.runner import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from samebits.cli.defaults import Default

USAGE_SLUG = "usage"


class CommandParser(argparse.ArgumentParser):
    """An argument parser whose errors are samebits errors, printed at one place.

    The options of a command take their defaults from the environment and from `pyproject.toml` too.
    """

    def __init__(self, **fields: Any) -> None:
        super().__init__(
            allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, add_help=False, **fields
        )
        self.add_argument("-h", "--help", action="help", help="show this help and exit")
        self._found: tuple[Default, ...] = ()

    def actions(self) -> Sequence[argparse.Action]:
        """Return the options and positions."""
        return tuple(self._actions)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read a command line as argparse does; the defaults that were found are `defaults` in the result."""
        command = self.prog.partition(" ")[2]
        if command:
            self._found = apply_defaults(self, command, self._actions, args)
            self.set_defaults(defaults=self._found)
            if self._found:
                lines = "".join(f"  {each.words}  ({each.place})\n" for each in self._found)
                self.epilog = f"{self.epilog or ''}\n\ndefaults here:\n{printable_lines(lines)}".strip()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Refuse the command line. Where an option has come from a default, the message says from which.

        Raises:
            SamebitsError: always; `usage`.
        """
        named = set(re.findall(r"--[a-z-]+", message))
        origins = listed(each for each in self._found if each.option in named)
        told = f"; defaults: {origins}" if origins else ""
        raise SamebitsError(f"{message}{told}; see `{self.prog} --help`", slug=USAGE_SLUG)


class ScriptParser(CommandParser):
    """Splits off `SCRIPT|-m MODULE [arguments]`, the part that belongs to the script untouched.

    The options of samebits come before the script; the first word that is not one of them is the script.
    """

    def __init__(self, *, dashed: Collection[str] = (), **fields: Any) -> None:
        """Make the parser, as argparse does.

        Args:
            dashed: options whose value may begin with a dash.
            fields: of `argparse.ArgumentParser`.
        """
        self._dashed = dashed
        super().__init__(**fields)

    def option_names(self) -> frozenset[str]:
        """Return all options, such as `--json`."""
        return frozenset(name for action in self._actions for name in action.option_strings)

    def parse_command(self, arguments: Sequence[str], *, target_required: bool = True) -> argparse.Namespace:
        """Return the options, and the script as `target`; None if there is none and none is required."""
        start = self._target_index(arguments)
        # --help and wrong options come first.
        options = self.parse_args(self._joined(arguments[:start]))
        rest = arguments[start:]
        options.target = self._target(rest) if rest or target_required else None
        return options

    def _joined(self, words: Sequence[str]) -> list[str]:
        """Join `--name value` to one word where argparse would take the value for an option."""
        joined: list[str] = []
        for word in words:
            if joined and joined[-1] in self._dashed:
                joined[-1] += f"={word}"
            else:
                joined.append(word)
        return joined

    def _target_index(self, arguments: Sequence[str]) -> int:
        index = 0
        while index < len(arguments):
            word = arguments[index]
            if word == "--" or word.startswith("-m") or not word.startswith("-") or word == "-":
                return index
            index += 2 if self._has_value(word, arguments[index + 1 : index + 2]) else 1
        return len(arguments)

    def _has_value(self, word: str, following: Sequence[str]) -> bool:
        """Tell whether the word after an option is its value; an optional value is always a number."""
        action = next((a for a in self._actions if word in a.option_strings), None)
        if action is None or action.nargs == 0:
            return False
        return action.nargs != argparse.OPTIONAL or (following[0:1] != [] and following[0].isdigit())

    def _target(self, words: Sequence[str]) -> Target:
        if words and words[0] == "--":  # what follows is the script, even if its name starts with a dash
            words = words[1:]
        elif words and words[0].startswith("-m"):
            words = [words[0][2:], *words[1:]] if words[0] != "-m" else words[1:]
            if not words or not words[0]:
                self.error("expected the name of a module after -m, found nothing")
            return Target(script=None, module=words[0], arguments=tuple(words[1:]))
        if not words or not words[0]:
            self.error("expected a script or -m MODULE, found neither")
        return Target(script=words[0], module=None, arguments=tuple(words[1:]))


def whole_number(least: int) -> Callable[[str], int]:
    """Return a parser of whole numbers for an option that counts."""

    def parse(text: str) -> int:
        value = int(text) if text.isascii() and text.isdigit() else least - 1
        if value < least:
            message = f"expected a whole number of at least {least}, found {text!r}"
            raise argparse.ArgumentTypeError(message)
        return value

    return parse


def seconds(text: str) -> float:
    """Parse a time in seconds."""
    return _above_zero(text, "seconds")


def days(text: str) -> float:
    """Parse a time in days."""
    return _above_zero(text, "days")


def _above_zero(text: str, unit: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of {unit} above 0, found {text!r}")
    return value
