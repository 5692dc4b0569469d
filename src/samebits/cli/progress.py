"""What the user sees on a terminal while scripts run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.cli.terminal import style_of

if TYPE_CHECKING:
    from typing import TextIO

    from samebits.spread.spread import Progress

_MOST_SEEDS = 8


class Phases:
    """Announces each run with a line; the run itself shows a live one below.

    Args:
        stream: a terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._style = style_of(stream)

    def __call__(self, words: str) -> None:
        """A run is about to begin."""
        print(self._style.paint(f"samebits: {words}", "dim"), file=self._stream, flush=True)


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
