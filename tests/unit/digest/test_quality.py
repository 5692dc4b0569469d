"""More than ten million variants of tensors: no two have an equal digest, or an equal half of one."""

import itertools
from array import array

import numpy as np
import pytest
import torch

from samebits.digest import _definition, native
from samebits.digest._backends import cpu_backend
from samebits.digest._torch_backend import block_values

pytestmark = pytest.mark.skipif(native.load() is None, reason="takes the C library's speed")

CHUNK = 1 << 16


def digest_rows(rows, *, dtype="uint8", sizes=None):
    """The digests of the rows of a matrix, each a tensor of `dtype` and `sizes`: two columns of 64 bits."""
    assert rows.flags.c_contiguous
    sizes = (rows.nbytes // len(rows) // _definition.DTYPES[dtype][1],) if sizes is None else sizes
    words = np.empty((len(rows), 2 + len(sizes)), np.uint64)
    words[:, 0] = rows.ctypes.data + np.arange(len(rows)) * rows.strides[0]
    words[:, 1] = _definition.header(dtype) | len(sizes) << _definition.N_DIMS
    words[:, 2:] = sizes
    return np.frombuffer(
        cpu_backend().digest_described(array("Q", words.tobytes()), len(rows)), np.uint64
    ).reshape(-1, 2)


def changed(base, positions, values, dtype):
    """Digests of copies of `base`: in copy i, elements `positions[i]` have become `values[i]`."""
    found = []
    for start in range(0, len(positions), CHUNK):
        chosen = positions[start : start + CHUNK]
        rows = np.repeat(base[None], len(chosen), axis=0)
        np.put_along_axis(rows, chosen, values[start : start + CHUNK], axis=1)
        found.append(digest_rows(rows, dtype=dtype))
    return np.concatenate(found)


def pairs(n, limit=None):
    """All pairs of different positions below n, or a regular choice of them."""
    both = np.stack(np.triu_indices(n, 1), axis=1)
    return both if limit is None else both[:: -(-len(both) // limit)]


def bases(n, seed):
    """Random, constant and low-entropy float32 tensors of n elements, all of them different at every pair."""
    rng = np.random.default_rng(seed)
    return {
        "random": rng.standard_normal(n, np.float32),
        "zeros": np.zeros(n, np.float32),
        "ones": np.ones(n, np.float32),
    }


def bit_flips():
    """Every pair of bits of 1024, in a tensor of 128 bytes: random, all zeros, all ones."""
    bits = pairs(1024)
    rows = np.arange(CHUNK)
    for name, base in bases(32, 1).items():
        for start in range(0, len(bits), CHUNK):
            part = bits[start : start + CHUNK]
            copies = np.repeat(base.view(np.uint8)[None], len(part), axis=0)
            for k in (0, 1):
                copies[rows[: len(part)], part[:, k] // 8] ^= (1 << part[:, k] % 8).astype(np.uint8)
            yield f"bits {name}", digest_rows(copies, dtype="float32")


def signs():
    """Signs of any two of 1100 floats change, zeros among them: +0 becomes -0."""
    where = pairs(1100, 400_000)
    for name, base in bases(1100, 2).items():
        yield (
            f"signs {name}",
            changed(base.view(np.uint32), where, base.view(np.uint32)[where] ^ (1 << 31), "float32"),
        )


def steps_of_one_ulp():
    """Any two of 1400 floats go up by one ULP; in a second family one goes up and one down."""
    where = pairs(1400, 400_000)
    for name, base in bases(1400, 3).items():
        bits = base.view(np.uint32)
        yield f"ulp {name}", changed(bits, where, bits[where] + np.uint32(1), "float32")
        updown = bits[where] + np.array([1, 0xFFFFFFFF], np.uint32)
        yield f"ulp up down {name}", changed(bits, where, updown, "int32")


def swaps():
    """Any two elements change places: floats, small integers, 64-bit labels (the upper half always zero)."""
    for dtype, base in {
        "float64": np.random.default_rng(4).standard_normal(1000),
        "int64": np.arange(1, 1001),
        "int32": np.arange(1, 1301, dtype=np.int32),
        "uint16": np.arange(1, 1251, dtype=np.uint16),
        "float16": np.arange(1, 1251).astype(np.float16) + np.float16(0.5),
    }.items():
        where = pairs(len(np.unique(base)) if dtype != "float16" else 1000)
        yield f"swap {dtype}", changed(base, where, base[where[:, ::-1]], dtype)


def one_lane():
    """All fillings of one lane of a block (a column of an 8 x 16 table of int64) with few values."""
    for lane, values in ((0, 5), (7, 4), (15, 5)):
        fillings = np.array(list(itertools.product(range(values), repeat=8)))
        for start in range(0, len(fillings), CHUNK):
            part = fillings[start : start + CHUNK]
            rows = np.zeros((len(part), 8, 16), np.int64)
            rows[:, :, lane] = part
            if start == 0 and lane:
                rows, part = rows[1:], part[1:]  # all zeros is in the first family already
            yield f"lane {lane}", digest_rows(np.ascontiguousarray(rows), dtype="int64")


def joined_lanes():
    """Two words each of two lanes whose sums are common."""
    values = np.array(list(itertools.product(range(1, 31), repeat=4)))
    rows = np.zeros((len(values), 9, 16), np.int64)
    rows[:, 2, 3], rows[:, 7, 3], rows[:, 2, 11], rows[:, 7, 11] = values.T
    yield "joined lanes", digest_rows(rows, dtype="int64")


def subsets():
    """Every subset of 19 changes that are neighbours in the lanes: signs, exponents, both, booleans."""
    subset = np.arange(1, 1 << 19)
    chosen = (subset[:, None] >> np.arange(19) & 1).astype(bool)
    lane = [32 * stripe + 6 + half for stripe in range(8) for half in (0, 1)] + [
        32 * 7 + 22,
        32 * 7 + 23,
        32 * 6 + 23,
    ]
    rng = np.random.default_rng(7)
    base = rng.standard_normal(8 * 32, np.float32).view(np.uint32)
    for name, bits, words in (
        ("sign", 1 << 31, base),
        ("sign of zero", 1 << 31, np.zeros_like(base)),
        ("exponent", 1 << 23, base + np.uint32(1)),
        ("top byte", 0xFF << 24, base + np.uint32(2)),
    ):
        for start in range(0, len(subset), CHUNK):
            part = chosen[start : start + CHUNK]
            rows = np.repeat(words[None], len(part), axis=0)
            rows[:, lane] ^= np.where(part, np.uint32(bits), np.uint32(0))
            yield f"subset {name}", digest_rows(rows, dtype="float32", sizes=(8, 32))
    bools = np.zeros((len(subset), 256), np.uint8)
    bools[:, [*range(8), *range(128, 136), 64, 65, 192]] = chosen
    yield "subset bool", digest_rows(bools, dtype="bool")


def permutations():
    """Orders of nine numbers, and of eight rows of 16 floats (a stripe has two)."""
    orders = np.array(list(itertools.permutations(range(9))))
    yield "permutation", digest_rows(orders, dtype="int64")
    orders = np.array(list(itertools.permutations(range(8))))
    rows = np.random.default_rng(5).standard_normal((8, 16), np.float32)[orders]
    yield "rows", digest_rows(rows, dtype="float32", sizes=(8, 16))


def blocks():
    """Sixteen blocks, each one of two: every choice; and all orders of seven blocks."""
    two = np.random.default_rng(6).integers(0, 256, (2, 1024)).astype(np.uint8)
    choices = np.array(list(itertools.product((0, 1), repeat=16)))
    for start in range(0, len(choices), 4096):
        yield (
            "blocks",
            digest_rows(np.ascontiguousarray(two[choices[start : start + 4096]]), sizes=(16, 1024)),
        )
    seven = np.eye(7, 1024, dtype=np.uint8)
    yield (
        "block order",
        digest_rows(np.ascontiguousarray(seven[list(itertools.permutations(range(7)))]), sizes=(7, 1024)),
    )


def shapes():
    """Zeros of every shape with sizes below 24 in up to three dimensions, of several dtypes."""
    memory = np.zeros(24**3 * 8, np.uint8)
    for n_dims in range(4):
        sizes = np.array(list(itertools.product(range(24), repeat=n_dims)), np.uint64).reshape(
            24**n_dims, n_dims
        )
        for dtype in (
            "bool",
            "uint8",
            "int8",
            "float16",
            "bfloat16",
            "int32",
            "float32",
            "float64",
            "complex64",
        ):
            words = np.empty((len(sizes), 2 + n_dims), np.uint64)
            words[:, 0], words[:, 2:] = memory.ctypes.data, sizes
            words[:, 1] = _definition.header(dtype) | n_dims << _definition.N_DIMS
            yield "shapes", run_words(words)


def run_words(words):
    """Digests of descriptors, one a row, in pieces that the quick call takes."""
    parts = [words[i : i + 512] for i in range(0, len(words), 512)]
    return np.concatenate(
        [
            np.frombuffer(cpu_backend().digest_described(array("Q", p.tobytes()), len(p)), np.uint64).reshape(
                -1, 2
            )
            for p in parts
        ]
    )


def lengths():
    """Zeros and ones of every length to 20000: padding is not content."""
    for value in (0, 1):
        memory = np.full(20_000, value, np.uint8)
        words = np.empty((20_000 - 24, 3), np.uint64)
        words[:, 0], words[:, 1] = memory.ctypes.data, _definition.header("int8") | 1 << _definition.N_DIMS
        words[:, 2] = np.arange(24, 20_000)
        yield f"length {value}", run_words(words)


FAMILIES = (
    bit_flips,
    signs,
    steps_of_one_ulp,
    swaps,
    one_lane,
    joined_lanes,
    subsets,
    permutations,
    blocks,
    shapes,
    lengths,
)


def repeated(column):
    """How many values of a column occur more than once."""
    ordered = np.sort(column)
    return int((ordered[1:] == ordered[:-1]).sum())


def test_no_collisions():
    found = {}
    for family in FAMILIES:
        for name, digests in family():
            found.setdefault(name, []).append(digests)
    found = {name: np.concatenate(parts) for name, parts in found.items()}
    for name, digests in found.items():
        assert (repeated(digests[:, 0]), repeated(digests[:, 1])) == (0, 0), name
    together = np.concatenate(list(found.values()))
    print(f"{len(together):,} variants in {len(found)} families")
    assert len(together) >= 10_000_000
    assert (repeated(together[:, 0]), repeated(together[:, 1])) == (0, 0)


@pytest.mark.parametrize("n_bytes", [1, 8, 100, 1024, 5000])
@pytest.mark.parametrize("fill", ["random", "zeros", "ones"])
def test_avalanche(fill, n_bytes):
    """A flipped bit flips each bit of the digest half of the time."""
    rng = np.random.default_rng(n_bytes)
    base = {
        "random": rng.integers(0, 256, n_bytes),
        "zeros": np.zeros(n_bytes),
        "ones": np.full(n_bytes, 255),
    }[fill]
    base = base.astype(np.uint8)
    copies = np.repeat(base[None], 8 * n_bytes, axis=0)
    bit = np.arange(8 * n_bytes)
    copies[bit, bit // 8] ^= (1 << bit % 8).astype(np.uint8)
    difference = digest_rows(copies) ^ digest_rows(base[None])
    flipped = np.unpackbits(difference.view(np.uint8), axis=1)
    mean = flipped.sum(1).mean()
    deviations = abs(mean - 64) / (32**0.5 / len(copies) ** 0.5)
    assert deviations < 4.5
    if len(copies) >= 800:
        assert 0.4 < flipped.mean(0).min() < flipped.mean(0).max() < 0.6
    assert flipped.sum(1).min() > 20


def test_avalanche_of_shape_and_dtype():
    """What is not in the bytes is mixed as well."""
    memory = torch.zeros(100_000, dtype=torch.uint8).numpy()
    words = np.empty((2000, 3), np.uint64)
    words[:, 0], words[:, 1], words[:, 2] = (
        memory.ctypes.data,
        _definition.header("int8") | 1 << 20,
        np.arange(2000),
    )
    digests = run_words(words)
    flipped = np.unpackbits((digests[1:] ^ digests[:-1]).view(np.uint8), axis=1)
    assert abs(flipped.sum(1).mean() - 64) < 0.6
    assert 0.4 < flipped.mean(0).min() < flipped.mean(0).max() < 0.6


def test_one_value_moves_from_block_to_block():
    """What a change adds to the sums is different for each block, in every lane that it touches."""
    n = 1 << 17
    words = torch.zeros(2, _definition.STRIPES, _definition.LANES, dtype=torch.int64)
    words[1, 6, 3] = words[1, 2, 12] = 0x3F800000
    index = torch.arange(n)
    before, after = (block_values(w.expand(n, *w.shape), index) for w in words)
    for lane in (3, 4, 11, 12):
        assert repeated((after - before)[:, lane].numpy()) == 0


def test_the_search_sees_a_collision():
    assert repeated(np.array([3, 1, 2, 3], np.uint64)) == 1
