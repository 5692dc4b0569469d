"""Keyed hashing of arrays: integer arithmetic modulo 2**64, so the same values on every platform."""

from __future__ import annotations

from typing import Any

import numpy as np

# Multipliers of the finalizer of SplitMix64 (Steele, Lea, Flood 2014, "Mix13" of Stafford).
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def mix(words: Any) -> Any:
    """A bijection of 64 bits in which every bit of the input changes every bit of the output by half.

    Args:
        words: an array of `uint64`; it is not changed.

    Returns:
        A new array of `uint64`.
    """
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


def keyed(words: Any, key: int) -> Any:
    """64 bits that depend on a word and a key: `mix(mix(word + golden) + key)`.

    Args:
        words: an array of `uint64`.
        key: from 0 to 2**64 - 1.

    Returns:
        A new array of `uint64`.
    """
    return mix(mix(words + _GOLDEN) + np.uint64(key))


def scaled(words: Any, bound: int) -> Any:
    """Whole numbers below a bound: the high 64 bits of `word * bound`.

    No value is more likely than another one by more than `bound / 2**64` of itself.

    Args:
        words: an array of `uint64`.
        bound: from 1 to 2**63.

    Returns:
        A new array of `uint64`.
    """
    high, low = words >> _HALF, words & _LOW
    top, bottom = np.uint64(bound >> 32), np.uint64(bound & 0xFFFFFFFF)
    middle = high * bottom + ((low * bottom) >> _HALF)
    rest = low * top + (middle & _LOW)
    return high * top + (middle >> _HALF) + (rest >> _HALF)
