"""Text of strangers, made safe to show: a hostile file must not move the reader's cursor.

Control characters, terminal escapes, and the invisible characters that turn the direction of text or break
lines are shown as escape sequences: everything that `str.isprintable` rejects.
"""

from __future__ import annotations

import re

_UNUSUAL = re.compile(r"[^ -~]")
_UNUSUAL_IN_LINES = re.compile(r"[^ -~\n]")
_MORE = "…"

LONGEST_SHOWN = 2_000
"""Characters of one text that are shown; more would not help a reader."""


def printable(text: str) -> str:
    """Return text on one line, without control characters."""
    if text.isprintable():
        return text
    return _UNUSUAL.sub(_escaped, text.expandtabs(4))


def printable_lines(text: str) -> str:
    """Return text without control characters other than line ends; the escapes are valid in JSON too."""
    return _UNUSUAL_IN_LINES.sub(_escaped_for_json, text)


def shortened(text: str, most: int = LONGEST_SHOWN) -> str:
    """Return at most so many characters of a text, with a note of its length where some are left out."""
    if len(text) <= most:
        return text
    note = f"{_MORE} ({len(text)} characters)"
    return text[: most - len(note)] + note


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    return character if character.isprintable() else repr(character)[1:-1]


def _escaped_for_json(match: re.Match[str]) -> str:
    character = match[0]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 1 << 16:
        return f"\\u{code:04x}"
    code -= 1 << 16
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
