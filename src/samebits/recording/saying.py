"""Lines of samebits among the errors of a recorded script."""

from __future__ import annotations

import os
import sys


class OwnLines:
    """Says things on the descriptor that was the process's standard error when it began.

    Not on `sys.stderr`, which the script may replace; and not any more once the script has closed the
    descriptor, for it may have opened a file of its own under that number.
    """

    def __init__(self) -> None:
        self._identity = _identity()

    @property
    def open(self) -> bool:
        """Whether there is still where to write."""
        return self._identity is not None and _identity() == self._identity

    def say(self, text: str) -> None:
        """Write one line, if there is still where to write it."""
        self.write(f"samebits: {text}\n")

    def tell(self, text: str) -> None:
        """Write one line, unless there is nothing to say."""
        if text:
            self.say(text)

    def write(self, text: str) -> None:
        """Write text as it is, if there is still where to write it."""
        if not self.open:
            return
        try:
            if sys.stderr is not None:
                sys.stderr.flush()
            os.write(2, text.encode(errors="backslashreplace"))
        except (OSError, ValueError):
            return


def _identity() -> tuple[int, int] | None:
    try:
        found = os.fstat(2)
    except OSError:
        return None
    return found.st_dev, found.st_ino
