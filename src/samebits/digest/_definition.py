"""The definition of the digest, without torch: constants, dtype codes, closing (docs/reference/digest.md)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MASK = (1 << 64) - 1
LANES = 16
STRIPES = 8
SUMS = 8  # lanes l and l + 8 share a sum
BLOCK = 1024

CHAIN = 0x9E3779B1
MIX_1 = 0x85EBCA77
MIX_2 = 0xC2B2AE3D
STARTS = (
    0xEDAA801C0BB76B7F,
    0xA8130E1C1A912CB0,
    0x3E40474780E19F1E,
    0x45AB89FC3ACBB761,
    0xFC42F827E080C4C4,
    0xC80DD6E48C56C4F2,
    0x601C03D6F42D3F51,
    0x92E7EF168252ECFD,
    0xBA0E21BB6A2C1A8C,
    0xFEC8485EB10E74DC,
    0xF96B4253C6A21244,
    0x81ABA357AD8A0807,
    0xF462E622FC17277E,
    0xBDCF34F3E13BB743,
    0xD7D488CA8E64E863,
    0x058D8E8AA1746685,
)
INDEX_1 = 0xDB3ACFF067949FEF
INDEX_2 = 0x0E589787EB2A6C8B
FOLD_START = (0xAE484ED1E64C9927, 0x9877459752A73BD7)
FOLD_0 = 0x85E3B83333BEA5AB
FOLD_1 = 0x301D3659B0993B1D

# Name -> (code, bytes of an element). Codes are part of every digest: frozen. 0 and 128-255 are reserved.
DTYPES = {
    "bool": (1, 1),
    "uint8": (2, 1),
    "int8": (3, 1),
    "int16": (4, 2),
    "int32": (5, 4),
    "int64": (6, 8),
    "uint16": (7, 2),
    "uint32": (8, 4),
    "uint64": (9, 8),
    "float16": (10, 2),
    "bfloat16": (11, 2),
    "float32": (12, 4),
    "float64": (13, 8),
    "complex32": (14, 4),
    "complex64": (15, 8),
    "complex128": (16, 16),
    "float8_e4m3fn": (17, 1),
    "float8_e5m2": (18, 1),
    "float8_e4m3fnuz": (19, 1),
    "float8_e5m2fnuz": (20, 1),
    "float8_e8m0fnu": (21, 1),
    "float4_e2m1fn_x2": (22, 1),
    "bits1x8": (23, 1),
    "bits2x4": (24, 1),
    "bits4x2": (25, 1),
    "bits8": (26, 1),
    "bits16": (27, 2),
    "uint1": (28, 1),
    "uint2": (29, 1),
    "uint3": (30, 1),
    "uint4": (31, 1),
    "uint5": (32, 1),
    "uint6": (33, 1),
    "uint7": (34, 1),
    "int1": (35, 1),
    "int2": (36, 1),
    "int3": (37, 1),
    "int4": (38, 1),
    "int5": (39, 1),
    "int6": (40, 1),
    "int7": (41, 1),
}
COMPOSITE = 255  # the contents are a tag and the digests of parts
ABSENT = 128  # added to the code of a tensor that has no contents (meta, fake)

# The header word of a descriptor for the C library, beside the address of the tensor.
STRIDED = 1 << 12
N_DIMS = 20


def header(dtype: str) -> int:
    """Return the header word of a descriptor, but for the number of dimensions and the strided bit."""
    code, width = DTYPES[dtype]
    return code | (width.bit_length() - 1) << 8


def _mix(x: int) -> int:
    x ^= x >> 32
    x = x * MIX_1 & MASK
    x ^= x >> 29
    x = x * MIX_2 & MASK
    return x ^ x >> 32


def close(sums: Sequence[int], n_bytes: int, code: int, sizes: Sequence[int]) -> bytes:
    """Return the 16 bytes of a digest from its 16 block sums (of chains, then of trails)."""
    h0, h1 = FOLD_START
    for value in (*sums, n_bytes, code, len(sizes), *sizes):
        h0 ^= value
        h0 = (h0 ^ h0 >> 32) * FOLD_0 & MASK
        h1 = h1 + value & MASK
        h1 = (h1 ^ h1 >> 29) * FOLD_1 & MASK
    h0 = _mix(h0 + h1 & MASK)
    h1 = _mix(h1 + h0 & MASK)
    return struct.pack("<2Q", h0 + h1 & MASK, h1)


def absent(dtype: str, sizes: Sequence[int]) -> bytes:
    """Return the digest of a tensor without contents: its header alone."""
    return close((0,) * (2 * SUMS), 0, DTYPES.get(dtype, (0, 0))[0] | ABSENT, sizes)
