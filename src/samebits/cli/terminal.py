"""What the streams of this process can show."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

from samebits.printable import printable_lines
from samebits.report.style import Style

if TYPE_CHECKING:
    from typing import TextIO

_WIDEST = 100  # longer lines are hard to read
_COLOUR = re.compile(r"(\x1b\[(?:0|(?:[12]|3[123])(?:;(?:[12]|3[123]))*)m)")  # what `Style.paint` makes


def write(text: str, stream: TextIO) -> None:
    """Print a text, the one way to a terminal.

    Control characters, whoever they came from, and what the stream's encoding cannot express are shown as
    escape sequences. Only our own colours pass, and only on a terminal.
    """
    if stream.isatty():
        parts = _COLOUR.split(text)
        text = "".join(part if index % 2 else printable_lines(part) for index, part in enumerate(parts))
    else:
        text = printable_lines(text)
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream)


def style_of(stream: TextIO) -> Style:
    """Colour only on a terminal and without NO_COLOR; width of the terminal, at most 100."""
    is_terminal = stream.isatty()
    colour = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    columns = shutil.get_terminal_size((_WIDEST, 24)).columns
    return Style(colour=colour, width=max(40, min(columns, _WIDEST)))
