"""Philox4x32-10, and values made of its words ("Random numbers" in docs/reference/portable-numerics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from samebits.portable.reference.fma import fma

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array

_LOW = np.uint64(0xFFFFFFFF)
_UP = np.uint64(32)


def philox(key: int, counters: Array) -> Array:
    """Return the words of ten rounds of Philox4x32.

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
    """Return the first `count` words from block `first` of a stream on, uint32."""
    blocks = (np.arange((count + 3) // 4, dtype=np.uint64) + np.uint64(first)).astype(np.uint64)
    counters = np.empty((len(blocks), 4), np.uint32)
    counters[:, 0], counters[:, 1] = (blocks & _LOW).astype(np.uint32), (blocks >> _UP).astype(np.uint32)
    counters[:, 2], counters[:, 3] = stream, lane
    return philox(key, counters).ravel()[:count]


def words64(key: int, count: int, stream: int = 0) -> Array:
    """Return the first `count` pairs of words as numbers of 64 bits, uint64."""
    pairs = words(key, 2 * count, stream=stream).reshape(-1, 2).astype(np.uint64)
    joined: Array = pairs[:, 0] | pairs[:, 1] << _UP
    return joined


def uniform_f32(key: int, count: int, bits: int, low: float, high: float) -> Array:
    """Draw float32 values in [low, high), each from the upper `bits` of a word."""
    u = (words(key, count) >> np.uint32(32 - bits)).astype(np.float32) / np.float32(1 << bits)
    return _between(u, np.float32(low), np.float32(high))


def uniform_f64(key: int, count: int, low: float, high: float) -> Array:
    """Draw float64 values in [low, high), from 53 bits each."""
    u = (words64(key, count) >> np.uint64(11)).astype(np.float64) / np.float64(2**53)
    return _between(u, np.float64(low), np.float64(high))


def _between(u: Array, low: np.floating, high: np.floating) -> Array:
    with np.errstate(all="ignore"):
        value = u * (high - low) + low
    return np.where(value >= high, low, value).astype(u.dtype)


def bernoulli(key: int, count: int, p: Array) -> Array:
    """Draw 1 with probability p, else 0, as uint8; p is float64, for all or for each."""
    return (words(key, count).astype(np.float64) * 2.0**-32 < p).astype(np.uint8)


def integers(key: int, count: int, low: int, size: int) -> Array:
    """Draw int64 values in low … low + size - 1, size at most 2^64."""
    drawn = ((int(word) * size >> 64) + low for word in words64(key, count))
    return np.fromiter(((value + 2**63) % 2**64 - 2**63 for value in drawn), np.int64, count)


_SIN_F32 = "0x1.921fb6p+0 -0x1.4abbcep-1 0x1.466bc6p-4 -0x1.32d2ccp-8 0x1.507834p-13"
_COS_F32 = "0x1p+0 -0x1.3bd3ccp+0 0x1.03c1fp-2 -0x1.55d3c8p-6 0x1.e1f506p-11 -0x1.a6d1f2p-16"
_SIN_F64 = (
    "0x1.921fb54442d18p+0 -0x1.4abbce625be53p-1 0x1.466bc6775aae2p-4 -0x1.32d2cce62bd86p-8 "
    "0x1.50783487ee782p-13 -0x1.e3074fde8871fp-19 0x1.e8f434d018d63p-25 "
    "-0x1.6fadb9f155744p-31 0x1.aaec32af93359p-38"
)
_COS_F64 = (
    "0x1p+0 -0x1.3bd3cc9be45dep+0 0x1.03c1f081b5ac4p-2 -0x1.55d3c7e3cbffap-6 0x1.e1f506891babbp-11 "
    "-0x1.a6d1f2a204a8cp-16 0x1.f9d38a3763cc3p-22 -0x1.b6e24f44b128fp-28 0x1.20c62c2f2d7f5p-34"
)


def _polynomial(coefficients: str, z: Array) -> Array:
    """Evaluate a polynomial by fma from the highest coefficient down; they are given in ascending order."""
    values = [z.dtype.type(float.fromhex(text)) for text in coefficients.split()]
    total = np.full_like(z, values[-1])
    for value in values[-2::-1]:
        total = fma(total, z, np.full_like(z, value))
    return total


def turn(drawn: Array) -> tuple[Array, Array]:
    """Return cosine and sine of word / 2^32 (or 2^64) turns, float32 (float64)."""
    wide = drawn.dtype == np.uint64
    bits, of = (64, np.float64) if wide else (32, np.float32)
    word = drawn.dtype.type
    quarter = (drawn + word(1 << (bits - 3))) >> word(bits - 2)
    signed = (drawn - (quarter << word(bits - 2))).view(np.int64 if wide else np.int32)
    x = signed.astype(of) * of(2.0 ** -(bits - 2))
    s = _polynomial(_SIN_F64 if wide else _SIN_F32, x * x) * x
    c = _polynomial(_COS_F64 if wide else _COS_F32, x * x)
    a, b = np.where(quarter & word(1), s, c), np.where(quarter & word(1), c, s)
    return np.where((quarter + word(1)) & word(2), -a, a), np.where(quarter & word(2), -b, b)


def unit(drawn: Array) -> Array:
    """Return numbers in (0, 1]: float32 from words of 32 bits, float64 from 64."""
    if drawn.dtype == np.uint64:
        wide: Array = ((drawn >> np.uint64(11)).astype(np.float64) + 0.5) * np.float64(2.0**-53)
        return wide
    single: Array = ((drawn >> np.uint32(1)).astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-31)
    return single


def _drawn(key: int, count: int, wide: bool, stream: int) -> Array:
    return words64(key, count, stream) if wide else words(key, count, stream=stream)


def normal(key: int, count: int, wide: bool, mean: float, deviation: float, stream: int = 0) -> Array:
    """Draw normal values, float64 if wide, else float32."""
    from samebits.portable.reference.elementary import unary

    drawn = _drawn(key, count + count % 2, wide, stream)
    of = np.float64 if wide else np.float32
    radius = np.sqrt(of(-2) * unary("log", unit(drawn[::2])))
    z = np.stack([radius * part for part in turn(drawn[1::2])], axis=1).ravel()[:count]
    scaled: Array = z * of(deviation) + of(mean)
    return scaled


def exponential(key: int, count: int, wide: bool, rate: float, stream: int = 0) -> Array:
    """Draw exponential values, float64 if wide, else float32."""
    from samebits.portable.reference.elementary import unary

    drawn = _drawn(key, count, wide, stream)
    of = np.float64 if wide else np.float32
    value = -unary("log", unit(drawn))
    bounded: Array = np.maximum(value, of(2.0**-54 if wide else 2.0**-26)) / of(rate)
    return bounded
