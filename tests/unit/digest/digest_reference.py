"""The definition of docs/reference/digest.md in plain Python integers: slow, obvious, independent."""

import struct

M64 = (1 << 64) - 1


def splitmix64(seed, count):
    values = []
    for _ in range(count):
        seed = (seed + 0x9E3779B97F4A7C15) & M64
        z = seed
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M64
        z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
        values.append(z ^ z >> 31)
    return values


CONSTANTS = splitmix64(int.from_bytes(b"samebits", "little"), 22)
STARTS = CONSTANTS[:16]
INDEX_1, INDEX_2 = CONSTANTS[16] | 1, CONSTANTS[17] | 1
FOLD_STARTS = CONSTANTS[18:20]
FOLD_0, FOLD_1 = CONSTANTS[20] | 1, CONSTANTS[21] | 1


def step(chain, word):
    t = chain ^ word
    return (t ^ t >> 29) * 0x9E3779B1 & M64


def mix(x):
    x = (x ^ x >> 32) * 0x85EBCA77 & M64
    x = (x ^ x >> 29) * 0xC2B2AE3D & M64
    return x ^ x >> 32


def block_values(block, index):
    words = struct.unpack("<128Q", block)
    chain, trail = list(STARTS), [0] * 16
    for stripe in range(8):
        for lane in range(16):
            chain[lane] = step(chain[lane], words[16 * stripe + lane])
            trail[lane] = trail[lane] + chain[lane] & M64
    salt_1, salt_2 = index * INDEX_1 & M64, index * INDEX_2 & M64
    chain = [mix(value ^ salt_1) for value in chain]
    trail = [mix(value ^ salt_2) for value in trail]
    return [sums[lane] + sums[lane + 8] for sums in (chain, trail) for lane in range(8)]


def digest_contents(data, dtype_code, sizes):
    """The digest of the logical contents as bytes."""
    sums = [0] * 16
    for index in range(-(-len(data) // 1024)):
        block = data[1024 * index : 1024 * (index + 1)].ljust(1024, b"\0")
        sums = [a + b & M64 for a, b in zip(sums, block_values(block, index), strict=True)]
    h0, h1 = FOLD_STARTS
    for value in [*sums, len(data), dtype_code, len(sizes), *sizes]:
        h0 ^= value
        h0 = (h0 ^ h0 >> 32) * FOLD_0 & M64
        h1 = h1 + value & M64
        h1 = (h1 ^ h1 >> 29) * FOLD_1 & M64
    h0 = mix(h0 + h1 & M64)
    h1 = mix(h1 + h0 & M64)
    h0 = h0 + h1 & M64
    return struct.pack("<2Q", h0, h1)
