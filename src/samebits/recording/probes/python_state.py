"""Where CPython keeps the state of the generator behind `random.random()`."""

from __future__ import annotations

import ctypes
import random
import sys

_WORDS = 625  # Mersenne Twister: 624 words of state and a position


def python_state_address() -> tuple[int, int] | None:
    """Address and size in bytes; None where it is not found.

    `random.getstate()` makes 625 Python integers, 9 microseconds each time. CPython keeps the same words as C
    integers in the object (Modules/_randommodule.c, `RandomObject`, 3.10 to 3.14); they are read there
    when a comparison with `getstate()` shows that they are where they are expected.
    """
    instance = getattr(random, "_inst", None)
    offset = object.__basicsize__
    if sys.implementation.name != "cpython" or not isinstance(instance, random.Random):
        return None
    address = id(instance) + offset
    words = list((ctypes.c_uint32 * _WORDS).from_address(address))
    if words[1:] + words[:1] != list(random.getstate()[1]):
        return None
    return address, 4 * _WORDS
