"""Keyed permutations of whole numbers, and the part of an order that each rank gets."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from samebits.errors import SamebitsError
from samebits.rng.seeds import derive

# Multipliers of the finalizer of SplitMix64 (Steele, Lea, Flood 2014, "Mix13" of Stafford).
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def mix(words: Any) -> Any:
    """Apply a bijection of 64 bits in which a change of any input bit changes about half of the output bits.

    Args:
        words: an array of `uint64`; it is not changed.

    Returns:
        A new array of `uint64`.
    """
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


def keyed(words: Any, key: int) -> Any:
    """Return 64 bits that depend on a word and a key: `mix(mix(word + golden) + key)`.

    Args:
        words: an array of `uint64`.
        key: from 0 to 2**64 - 1.

    Returns:
        A new array of `uint64`.
    """
    return mix(mix(words + _GOLDEN) + np.uint64(key))


def scaled(words: Any, bound: int) -> Any:
    """Return whole numbers below a bound: the high 64 bits of `word * bound`.

    No value is more likely than another by more than `bound / 2**64` of itself.

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


SORTED_UP_TO = 16384
ROUNDS = 12
MAX_SIZE = 2**62


class Permutation:
    """An order of `range(size)` that follows from a key; docs/reference/data.md defines it exactly.

    Up to 16384 elements are sorted by a keyed hash of 64 bits, and the table is stored. More are moved by a
    Feistel network over the smallest power of two that holds them, applied again to values that land outside
    (Black and Rogaway 2002, "Ciphers with arbitrary finite domains"): any position is computed at once, and
    nothing is stored.

    Args:
        size: how many elements, from 0 to 2**62.
        key: from 0 to 2**64 - 1.

    Raises:
        SamebitsError: the size is not such a number; `sampler`.
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
        """Return the element at a position, from 0 to `size - 1`."""
        return int(self.block(position, position + 1)[0])

    def block(self, start: int, stop: int) -> Any:
        """Return the elements at the positions from `start` to `stop - 1`.

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
        """Return the elements at those positions, an array of `int64` with the shape of `positions`."""
        if self._table is not None:
            return self._table[positions]
        return self._at_all(np.asarray(positions, dtype=np.uint64)).astype(np.int64)

    def _at_all(self, positions: Any) -> Any:
        elements = self._encrypted(positions)
        size = np.uint64(self.size)
        outside = np.flatnonzero(elements >= size)
        while outside.size:
            elements[outside] = self._encrypted(elements[outside])
            outside = outside[elements[outside] >= size]
        return elements

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
        message = f"positions {start} to {stop} were asked for; expected positions within 0 to {size}"
        raise SamebitsError(message, slug="sampler")


@functools.lru_cache(maxsize=16)
def permutation(size: int, key: int) -> Permutation:
    """Return the permutation, cached between calls: a small one sorts, a large one derives keys."""
    return Permutation(size, key)


def _sorted(size: int, key: int) -> Any:
    order = np.argsort(keyed(np.arange(size, dtype=np.uint64), key), kind="stable").astype(np.int64)
    order.setflags(write=False)
    return order


def _round_keys(key: int) -> list[Any]:
    return [np.uint64(derive(key, "round", number)) for number in range(ROUNDS)]


TAILS = ("short", "drop", "pad")


@dataclass(frozen=True, slots=True)
class Partition:
    """Cuts the global order into global batches, and each of them into contiguous parts, one for each rank.

    Args:
        size: samples in the global order.
        batch_size: samples of a full batch of one rank.
        world_size: how many ranks there are.
        rank: the number of this one, from 0.
        tail: how the last batch is treated when it is not full. `short`: it is spread over the ranks, whose
            shares differ by one at most. `drop`: it is left out. `pad`: it is filled from the beginning of
            the order.
    """

    size: int
    batch_size: int
    world_size: int = 1
    rank: int = 0
    tail: str = "short"

    def __post_init__(self) -> None:
        if self.tail not in TAILS:
            message = f"tail is {self.tail!r}; expected one of {', '.join(TAILS)}"
            raise SamebitsError(message, slug="loader-option")
        if self.batch_size < 1:
            message = f"batch_size is {self.batch_size}; expected a whole number from 1"
            raise SamebitsError(message, slug="loader-option")
        if not 0 <= self.rank < self.world_size:
            message = f"the rank is {self.rank} of {self.world_size}; expected one from 0 to world_size - 1"
            raise SamebitsError(message, slug="rank")

    @property
    def global_batch(self) -> int:
        """Samples of a full batch of all ranks together."""
        return self.batch_size * self.world_size

    @property
    def positions(self) -> int:
        """Positions of one epoch: `size`, less the dropped samples, or plus the repeated ones."""
        if self.tail == "drop":
            return self.size // self.global_batch * self.global_batch
        if self.tail == "pad":
            return -(-self.size // self.global_batch) * self.global_batch
        return self.size

    @property
    def rest(self) -> int:
        """Samples of the last batch when it is not full, else 0."""
        return self.size % self.global_batch

    def __len__(self) -> int:
        """Return the number of global batches of one epoch."""
        return (self.positions + self.global_batch - 1) // self.global_batch

    def part(self, batch: int) -> tuple[int, int]:
        """Return the positions of this rank in a global batch: the first, and the one after the last."""
        begin = batch * self.global_batch
        count = min(self.global_batch, self.positions - begin)
        first, end = (-(-count * rank // self.world_size) for rank in (self.rank, self.rank + 1))
        return begin + first, begin + end

    def batches_from(self, position: int) -> range:
        """Return the global batches that this rank has a part of, from the end of another batch on."""
        left = range(-(-position // self.global_batch), len(self))
        first, end = self.part(left[-1]) if left else (0, 1)
        return left if first < end else left[:-1]

    @property
    def ranks_without_last(self) -> int:
        """The number of ranks that get nothing of the last batch."""
        return max(0, self.world_size - self.rest) if self.rest and self.tail == "short" else 0
