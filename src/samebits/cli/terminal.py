"""What the streams of this process can show."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from samebits.report.style import Style

if TYPE_CHECKING:
    from typing import TextIO

_WIDEST = 100  # longer lines are hard to read


def write(text: str, stream: TextIO) -> None:
    """Print a text; what the stream's encoding cannot express is shown as escape sequences."""
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream)


def style_of(stream: TextIO) -> Style:
    """Colour only on a terminal and without NO_COLOR; width of the terminal, at most 100."""
    is_terminal = stream.isatty()
    colour = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    columns = shutil.get_terminal_size((_WIDEST, 24)).columns
    return Style(colour=colour, width=max(40, min(columns, _WIDEST)))
