"""The layout of text: width, colour, rows, numbers and paths, in ASCII that any terminal and log can show."""

from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass

from samebits._text.option_names import Interface
from samebits._text.printable import printable, shortened

LABEL = 16  # columns before the text of a row
_LONGEST = 20_000  # characters of a paragraph: a record may hold texts of megabytes
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


@dataclass(frozen=True)
class Style:
    """Width and colour of a text, and the interface that it is read at.

    Args:
        colour: use ANSI colours.
        width: columns.
        interface: whose options the text names.
        state_only: values that are only read out do not count for the verdict.
    """

    colour: bool = False
    width: int = 100
    interface: Interface = Interface.COMMAND
    state_only: bool = False

    def paint(self, text: str, *names: str) -> str:
        """Return the text in these colours (`bold`, `dim`, `red`, `green`, `yellow`), if there are any."""
        if not (self.colour and text and names):
            return text
        codes = ";".join(_CODES[name] for name in names)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def wrap(self, text: str, *, indent: int = 0, hanging: int | None = None) -> list[str]:
        """Wrap a text to `width` columns; paths and names are never broken."""
        first, rest = " " * indent, " " * (indent if hanging is None else hanging)
        return textwrap.wrap(
            shortened(text, _LONGEST),
            self.width,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [first.rstrip()]

    def titled(self, title: str, text: str, *names: str) -> list[str]:
        """Wrap a text after a title and a colon; the title is bold, and in these colours."""
        lines = self.wrap(f"{title}: {text}", hanging=2)
        return [self.paint(title, "bold", *names) + lines[0][len(title) :], *lines[1:]]


def row(label: str, text: str, style: Style, width: int = LABEL) -> list[str]:
    """Return a label and its text in two columns; an item of a list hangs below its dash."""
    hanging = width + 2 if text.startswith(("- ", "  ")) else width
    indent = width + 2 if text.startswith("  ") else width
    wrapped = style.wrap(printable(text.lstrip()), indent=indent, hanging=hanging)
    return [style.paint(f"  {label:{width - 2}}", "dim") + wrapped[0][width:], *wrapped[1:]]


def number(value: int) -> str:
    """Return an integer with a space between thousands."""
    return f"{value:,}".replace(",", " ")


def count(value: int, noun: str) -> str:
    """Return `1 run`, `2 runs`."""
    return f"{number(value)} {noun}" + ("" if value == 1 else "s")


def shown_path(path: str, folder: str = ".") -> str:
    """Return a path relative to a folder if it is inside it."""
    relative = os.path.relpath(path, folder)
    return path if relative.startswith("..") else relative
