"""The width and colour of text. Words are plain ASCII, which any terminal and log can show."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from samebits._text.printable import printable, shortened

__all__ = ["LABEL", "Style", "number", "printable", "row"]

LABEL = 16  # columns before the text of a row
_LONGEST = 20_000  # characters of a paragraph: a record may hold texts of megabytes
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


@dataclass(frozen=True)
class Style:
    """Width and colour of a text.

    Args:
        colour: use ANSI colours.
        width: columns.
    """

    colour: bool = False
    width: int = 100

    def paint(self, text: str, *names: str) -> str:
        """Return the text in these colours (`bold`, `dim`, `red`, `green`, `yellow`)."""
        if not self.colour or not text:
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


def row(label: str, text: str, style: Style) -> list[str]:
    """Return a label and its text in two columns."""
    hanging = LABEL + 2 if text.startswith("- ") else LABEL
    wrapped = style.wrap(printable(text), indent=LABEL, hanging=hanging)
    return [style.paint(f"  {label:{LABEL - 2}}", "dim") + wrapped[0][LABEL:], *wrapped[1:]]


def number(value: int) -> str:
    """Return an integer with a space between thousands."""
    return f"{value:,}".replace(",", " ")
