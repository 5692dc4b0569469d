"""What the user sees on a terminal while scripts run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.cli.terminal import style_of

if TYPE_CHECKING:
    from typing import TextIO


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
