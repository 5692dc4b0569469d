"""Text of others, as it may be shown: a hostile file must not move the cursor of who reads about it.

Shown as escape sequences are control characters, terminal escapes, and the invisible characters that turn
the direction of text or break lines: all that `str.isprintable` says no to.
"""

from __future__ import annotations

import re

_UNUSUAL = re.compile(r"[^ -~]")
_UNUSUAL_IN_LINES = re.compile(r"[^ -~\n]")
_MORE = "…"

LONGEST_SHOWN = 2_000
"""Characters of one text that are shown; more of them say no more to a reader."""


def printable(text: str) -> str:
    """Text on one line, without control characters."""
    if text.isprintable():
        return text
    return _UNUSUAL.sub(_escaped, text.expandtabs(4))


def printable_lines(text: str) -> str:
    """Text without control characters but line ends; the escapes are those of JSON too."""
    return _UNUSUAL_IN_LINES.sub(_escaped_for_json, text)


def shortened(text: str, most: int = LONGEST_SHOWN) -> str:
    """Text of at most so many characters, with a note of its length where some are left out."""
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
