"""Text and live lines on the streams of this process."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

from samebits._text.printable import printable, printable_lines
from samebits.recording.terminal_row import StatusRow, can_show
from samebits.report.style import Style

if TYPE_CHECKING:
    from typing import TextIO

    from samebits.commands.spread.study import Progress
    from samebits.verification.plans import Phase

_WIDEST = 100  # longer lines are hard to read
_COLOUR = re.compile(r"(\x1b\[(?:0|(?:[12]|3[123])(?:;(?:[12]|3[123]))*)m)")  # what `Style.paint` makes


def write(text: str, stream: TextIO) -> None:
    """Print a text; everything that reaches a terminal goes through here.

    Control characters, and characters that the stream's encoding lacks, are shown as escape sequences.
    Only the colours of samebits pass, and only on a terminal.
    """
    if stream.isatty():
        parts = _COLOUR.split(text)
        text = "".join(part if index % 2 else printable_lines(part) for index, part in enumerate(parts))
    else:
        text = printable_lines(text)
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream)


def style_of(stream: TextIO, *, state_only: bool = False) -> Style:
    """Colour only on a terminal and without NO_COLOR; width of the terminal, at most 100.

    Args:
        stream: where the text goes.
        state_only: see `Style`.
    """
    is_terminal = stream.isatty()
    colour = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    columns = shutil.get_terminal_size((_WIDEST, 24)).columns
    return Style(colour=colour, width=max(40, min(columns, _WIDEST)), state_only=state_only)


_MOST_SEEDS = 8


class Phases:
    """A live announcement of each run.

    A run whose output is shown gets a line above it. Other runs are named in the last row of the terminal, if
    it can be reserved; the run itself adds its steps there.

    Args:
        stream: a terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._style = style_of(stream)
        self._row: StatusRow | None = None

    def __call__(self, phase: Phase | str) -> None:
        """Announce a run that is about to begin."""
        in_row = can_show(os.environ)
        if isinstance(phase, str) or phase.shows_output or not in_row:
            words = phase if isinstance(phase, str) else phase.description
            write(self._style.paint(f"samebits: {printable(words)}", "dim"), self._stream)
            self._stream.flush()
        if in_row and not isinstance(phase, str):
            self._row = StatusRow()  # the run before may have given the row back
            self._row.show(f"samebits: {phase.text()}")

    def clear(self) -> None:
        """Release the last row."""
        if self._row is not None:
            self._row.clear()
            self._row = None


class SeedCount:
    """A live line: how many seeds are done, and which run.

    Args:
        stream: a terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = ""

    def __call__(self, progress: Progress) -> None:
        """Show which seeds run; the line is redrawn only when it has changed."""
        running = ", ".join(map(str, progress.running[:_MOST_SEEDS]))
        more = ", ..." if len(progress.running) > _MOST_SEEDS else ""
        now = f"running {running}{more}" if running else "reading"
        text = f"samebits: {progress.done} of {progress.total} seeds done, {now}, {progress.seconds:.0f} s"
        if text != self._shown:
            self._stream.write(f"\r\x1b[K{text}")
            self._stream.flush()
            self._shown = text

    def clear(self) -> None:
        """Clear the line."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = ""
