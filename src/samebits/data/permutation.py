"""A shuffle that is not stored: a keyed bijection of the whole numbers below a size."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from samebits.data.mixing import keyed, mix
from samebits.determinism.seeds import derive
from samebits.errors import SamebitsError

SORTED_UP_TO = 16384
ROUNDS = 12
MAX_SIZE = 2**62


class Permutation:
    """An order of `range(size)` that follows from a key; docs/data.md defines it exactly.

    Up to 16384 elements are sorted by a keyed hash of 64 bits, which is kept. More are moved by a Feistel
    network over the smallest power of two that holds them, applied again to what lands outside (Black and
    Rogaway 2002, "Ciphers with arbitrary finite domains"): any position is found at once, nothing is kept.

    Args:
        size: how many elements, from 0 to 2**62.
        key: from 0 to 2**64 - 1.

    Raises:
        SamebitsError: that is no size; `sampler`.
    """

    def __init__(self, size: int, key: int) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= MAX_SIZE:
            message = f"the size of a permutation is {size!r}; expected a whole number from 0 to 2**62"
            raise SamebitsError(message, slug="sampler")
        self.size = size
        self.key = key
        self._table = _sorted(size, key) if size <= SORTED_UP_TO else None
        bits = max(size - 1, 1).bit_length()
        self._low_bits = np.uint64(bits // 2)
        self._low = np.uint64((1 << bits // 2) - 1)
        self._high = np.uint64((1 << bits - bits // 2) - 1)
        self._rounds = [] if size <= SORTED_UP_TO else _round_keys(key)

    def __len__(self) -> int:
        return self.size

    def at(self, position: int) -> int:
        """The element at a position, from 0 to `size - 1`."""
        return int(self.block(position, position + 1)[0])

    def block(self, start: int, stop: int) -> Any:
        """The elements at the positions from `start` to `stop - 1`.

        Returns:
            An array of `int64`.

        Raises:
            SamebitsError: a position is outside of the permutation; `sampler`.
        """
        check_range(start, stop, self.size)
        if self._table is not None:
            return self._table[start:stop].copy()
        return self._at_all(np.arange(start, stop, dtype=np.uint64)).astype(np.int64)

    def of(self, positions: Any) -> Any:
        """The elements at those positions, an array of `int64` with the shape of `positions`."""
        if self._table is not None:
            return self._table[positions]
        return self._at_all(np.asarray(positions, dtype=np.uint64)).astype(np.int64)

    def _at_all(self, positions: Any) -> Any:
        found = self._encrypted(positions)
        size = np.uint64(self.size)
        outside = np.flatnonzero(found >= size)
        while outside.size:
            found[outside] = self._encrypted(found[outside])
            outside = outside[found[outside] >= size]
        return found

    def _encrypted(self, words: Any) -> Any:
        high, low = words >> self._low_bits, words & self._low
        for number, key in enumerate(self._rounds):
            if number % 2:
                low = low ^ ((mix(high + key) >> np.uint64(32)) & self._low)
            else:
                high = high ^ ((mix(low + key) >> np.uint64(32)) & self._high)
        return (high << self._low_bits) | low


def check_range(start: int, stop: int, size: int) -> None:
    """Refuse positions outside of an order.

    Raises:
        SamebitsError: `0 <= start <= stop <= size` does not hold; `sampler`.
    """
    if not 0 <= start <= stop <= size:
        message = f"the positions {start} to {stop} were asked for; expected some within 0 to {size}"
        raise SamebitsError(message, slug="sampler")


@functools.lru_cache(maxsize=16)
def permutation(size: int, key: int) -> Permutation:
    """The permutation, made once for several calls: a small one sorts, a large one derives keys."""
    return Permutation(size, key)


def _sorted(size: int, key: int) -> Any:
    order = np.argsort(keyed(np.arange(size, dtype=np.uint64), key), kind="stable").astype(np.int64)
    order.setflags(write=False)
    return order


def _round_keys(key: int) -> list[Any]:
    return [np.uint64(derive(key, "round", number)) for number in range(ROUNDS)]
