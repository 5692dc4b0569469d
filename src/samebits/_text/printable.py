"""Text for a terminal: what strangers wrote, made harmless, and phrases with numbers and names in them.

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


def end_of(text: str, most: int) -> str:
    """Return the end of a text that has more characters: the last parts of paths tell modules apart."""
    return text if len(text) <= most else f"{_MORE}{text[1 - most :]}"


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


_SPELLED_OUT = re.compile(r"[A-Z]([A-Z0-9]|$)")  # LSTM, L1Loss, RMSprop: spoken letter by letter
_LETTERS_WITH_A_VOWEL_SOUND = "AEFHILMNORSX"  # an "el", an "ess"; but a "you"
_VOWEL_SOUND = re.compile(r"[aeio]|u(?!int|ni|se|t)", re.IGNORECASE)


def with_article(noun: str) -> str:
    """Return the noun with `a` or `an`, by sound: `an object`, `a uint8`, `an LSTM`, `a UNet`.

    Args:
        noun: such as the name of a type, maybe with its package before it.
    """
    word = noun.lstrip("`'_")
    if _SPELLED_OUT.match(word):
        is_vowel = word[0] in _LETTERS_WITH_A_VOWEL_SOUND
    else:
        is_vowel = _VOWEL_SOUND.match(word) is not None
    return f"{'an' if is_vowel else 'a'} {noun}"


def exit_text(status: int) -> str:
    """Say how a process ended: `by SIGKILL` or `with exit status 3`.

    Args:
        status: as the shell would show it: 128 + N after signal N.
    """
    import signal  # late: few processes need it

    try:
        return f"by {signal.Signals(status - 128).name}"
    except ValueError:
        return f"with exit status {status}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 pair`, `2 pairs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
