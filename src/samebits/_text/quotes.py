"""Which places of a line of source code are inside of a string."""

from __future__ import annotations

import re

from samebits._text.string_literals import Part

_STRING = re.compile(r"\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?")


class Quotes:
    """Finds the string around a place; places are asked from the first to the last.

    Args:
        text: source code.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = self._done = 0
        self._last = Part(0, 0)

    def around(self, position: int) -> Part | None:
        """Return the string with its quotes that a place is in the middle of."""
        start = self._text.rfind("\n", self._line, position) + 1
        if start > self._line:
            self._line = start
            self._done = max(start, self._done)
        while self._last.end <= position:
            found = _STRING.search(self._text, self._done, position)
            if found is None:
                return None
            whole = _STRING.match(self._text, found.start())
            self._last = Part(*(whole or found).span())
            self._done = self._last.end
        return self._last if self._last.start < position else None
