"""Words about names and numbers that are only known at run time."""

from __future__ import annotations

import re

_SPELLED_OUT = re.compile(r"[A-Z]([A-Z0-9]|$)")  # LSTM, L1Loss, RMSprop: spoken letter by letter
_LETTERS_WITH_A_VOWEL_SOUND = "AEFHILMNORSX"  # an "el", an "ess"; but a "you"
_VOWEL_SOUND = re.compile(r"[aeio]|u(?!int|ni|se|t)", re.IGNORECASE)


def with_article(noun: str) -> str:
    """The noun with `a` or `an`, by sound: `an object`, `a uint8`, `an LSTM`, `a UNet`.

    Args:
        noun: such as the name of a type, maybe with its package before it.
    """
    word = noun.lstrip("`'_")
    if _SPELLED_OUT.match(word):
        is_vowel = word[0] in _LETTERS_WITH_A_VOWEL_SOUND
    else:
        is_vowel = _VOWEL_SOUND.match(word) is not None
    return f"{'an' if is_vowel else 'a'} {noun}"


def counted(number: int, noun: str) -> str:
    """`1 pair`, `2 pairs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
