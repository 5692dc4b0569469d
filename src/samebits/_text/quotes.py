"""Which places of a line of source code are inside of a string."""

from __future__ import annotations

import re

from samebits._text.string_literals import Part

_START = re.compile("[\"']")
_STRING = re.compile(r"\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?")


class Quotes:
    """Finds the string around a place; places are asked from the first to the last.

    Args:
        text: source code.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._seen = self._done = 0
        self._last = Part(0, 0)

    def around(self, position: int) -> Part | None:
        """Return the string with its quotes that a place is in the middle of."""
        line = self._text.rfind("\n", self._seen, position) + 1
        self._done = max(self._done, line)
        self._seen = position
        while self._last.end <= position:
            found = _START.search(self._text, self._done, position)
            whole = _STRING.match(self._text, found.start()) if found is not None else None
            if whole is None:
                self._done = position
                return None
            self._last = Part(*whole.span())
            self._done = self._last.end
        return self._last if self._last.start < position else None
