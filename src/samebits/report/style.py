"""How text is set: width and colour. Our own words are plain ASCII, so they survive any terminal and log."""

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
        """The text in these colours (`bold`, `dim`, `red`, `green`, `yellow`)."""
        if not self.colour or not text:
            return text
        codes = ";".join(_CODES[name] for name in names)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def wrap(self, text: str, *, indent: int = 0, hanging: int | None = None) -> list[str]:
        """Lines of at most `width` columns; paths and names are never broken."""
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
    """A label and the text that it is about, in columns."""
    hanging = LABEL + 2 if text.startswith("- ") else LABEL
    wrapped = style.wrap(printable(text), indent=LABEL, hanging=hanging)
    return [style.paint(f"  {label:{LABEL - 2}}", "dim") + wrapped[0][LABEL:], *wrapped[1:]]


def number(value: int) -> str:
    """An integer with a space between thousands."""
    return f"{value:,}".replace(",", " ")
