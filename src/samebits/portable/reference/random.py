"""Random numbers: Philox4x32-10, and what is made of its words ("Random numbers" in docs/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array

_LOW = np.uint64(0xFFFFFFFF)
_UP = np.uint64(32)


def philox(key: int, counters: Array) -> Array:
    """Ten rounds of Philox4x32.

    Args:
        key: 64 bits.
        counters: (n, 4) uint32.

    Returns:
        (n, 4) uint32.
    """
    c = [counters[:, i].astype(np.uint64) for i in range(4)]
    k0, k1 = key & 0xFFFFFFFF, key >> 32 & 0xFFFFFFFF
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> _UP) ^ c[1] ^ np.uint64(k0), p1 & _LOW, (p0 >> _UP) ^ c[3] ^ np.uint64(k1), p0 & _LOW]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, axis=1).astype(np.uint32)


def words(key: int, count: int, *, first: int = 0, stream: int = 0, lane: int = 0) -> Array:
    """The first `count` words from block `first` of a stream on, uint32."""
    blocks = (np.arange((count + 3) // 4, dtype=np.uint64) + np.uint64(first)).astype(np.uint64)
    counters = np.empty((len(blocks), 4), np.uint32)
    counters[:, 0], counters[:, 1] = (blocks & _LOW).astype(np.uint32), (blocks >> _UP).astype(np.uint32)
    counters[:, 2], counters[:, 3] = stream, lane
    return philox(key, counters).ravel()[:count]


def words64(key: int, count: int) -> Array:
    """The first `count` pairs of words as numbers of 64 bits, uint64."""
    pairs = words(key, 2 * count).reshape(-1, 2).astype(np.uint64)
    joined: Array = pairs[:, 0] | pairs[:, 1] << _UP
    return joined


def uniform_f32(key: int, count: int, bits: int, low: float, high: float) -> Array:
    """float32 values in [low, high), from the upper `bits` of a word each."""
    u = (words(key, count) >> np.uint32(32 - bits)).astype(np.float32) / np.float32(1 << bits)
    return _between(u, np.float32(low), np.float32(high))


def uniform_f64(key: int, count: int, low: float, high: float) -> Array:
    """float64 values in [low, high), from 53 bits each."""
    u = (words64(key, count) >> np.uint64(11)).astype(np.float64) / np.float64(2**53)
    return _between(u, np.float64(low), np.float64(high))


def _between(u: Array, low: np.floating, high: np.floating) -> Array:
    with np.errstate(all="ignore"):
        value = u * (high - low) + low
    return np.where(value >= high, low, value).astype(u.dtype)


def bernoulli(key: int, count: int, p: Array) -> Array:
    """uint8: 1 with probability p, float64, for all or for each."""
    return (words(key, count).astype(np.float64) * 2.0**-32 < p).astype(np.uint8)


def integers(key: int, count: int, low: int, size: int) -> Array:
    """int64 values in low … low + size - 1, size at most 2^64."""
    drawn = ((int(word) * size >> 64) + low for word in words64(key, count))
    return np.fromiter(((value + 2**63) % 2**64 - 2**63 for value in drawn), np.int64, count)
