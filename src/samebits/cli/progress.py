"""What the user sees on a terminal while scripts run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from samebits.cli.terminal import style_of
from samebits.recording.status_row import StatusRow, can_show

if TYPE_CHECKING:
    from typing import TextIO

    from samebits.spread.spread import Progress
    from samebits.verification.series import Phase

_MOST_SEEDS = 8


class Phases:
    """Announces each run.

    A run whose output is shown gets a line above it. Others are named in the last row of the terminal only,
    where it can be kept; the run itself adds its steps there.

    Args:
        stream: a terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._style = style_of(stream)
        self._row: StatusRow | None = None

    def __call__(self, phase: Phase | str) -> None:
        """A run is about to begin."""
        in_row = can_show(os.environ)
        if isinstance(phase, str) or phase.shows_output or not in_row:
            words = phase if isinstance(phase, str) else phase.words
            print(self._style.paint(f"samebits: {words}", "dim"), file=self._stream, flush=True)
        if in_row and not isinstance(phase, str):
            self._row = StatusRow()  # the run before may have given the row back
            self._row.show(f"samebits: {phase.text()}")

    def clear(self) -> None:
        """Give the last row back."""
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
        """Some seeds run; the line is drawn when it has changed."""
        running = ", ".join(map(str, progress.running[:_MOST_SEEDS]))
        more = ", ..." if len(progress.running) > _MOST_SEEDS else ""
        now = f"running {running}{more}" if running else "reading"
        text = f"samebits: {progress.done} of {progress.total} seeds done, {now}, {progress.seconds:.0f} s"
        if text != self._shown:
            self._stream.write(f"\r\x1b[K{text}")
            self._stream.flush()
            self._shown = text

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = ""
