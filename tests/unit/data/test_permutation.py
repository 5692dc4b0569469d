"""A shuffle that is not stored: a bijection, the same everywhere, and as random as one."""

from __future__ import annotations

import hashlib
import itertools
import math

import numpy as np
import pytest

from samebits.data.permutation import SORTED_UP_TO, Permutation
from samebits.errors import SamebitsError

BILLION = 10**9
MASK = 2**64 - 1
GOLDEN_SMALL = [8, 9, 7, 5, 3, 4, 1, 0, 2, 6]
GOLDEN_LARGE = [620398046, 515613289, 486899364, 753071244]
GOLDEN_LAST = 472105950739843840
SIZES = (0, 1, 2, 3, 7, 100, 1000, SORTED_UP_TO, SORTED_UP_TO + 1, 2**15, 2**15 + 1, 100_003, 2**17)


def chi_square_bound(cells):
    """Of that many cells minus 1 degrees of freedom, exceeded with a chance of about 1e-6."""
    degrees = cells - 1
    return degrees * (1 - 2 / (9 * degrees) + 4.75 * math.sqrt(2 / (9 * degrees))) ** 3


@pytest.mark.parametrize("size", SIZES)
def test_every_element_comes_once(size):
    found = Permutation(size, 3).block(0, size)

    assert found.dtype == np.int64
    assert np.array_equal(np.sort(found), np.arange(size))


@pytest.mark.parametrize("size", [10, 1000, 100_003, BILLION])
def test_a_block_is_what_its_positions_are(size):
    shuffle = Permutation(size, 11)
    start = size // 3

    block = shuffle.block(start, min(start + 40, size))

    assert [shuffle.at(position) for position in range(start, start + len(block))] == block.tolist()


def test_values_are_fixed():
    """They never change: a saved position would point elsewhere. Also those of docs/reference/data.md."""
    assert Permutation(10, 1).block(0, 10).tolist() == GOLDEN_SMALL
    assert Permutation(BILLION, 1).block(0, 4).tolist() == GOLDEN_LARGE
    assert Permutation(2**62, 2**64 - 1).at(2**61) == GOLDEN_LAST


def plain_mix(word):
    """The definition of docs/reference/data.md in Python's own integers."""
    word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) & MASK
    return word ^ word >> 31


def plain_at(size, key, position):
    if size <= SORTED_UP_TO:
        hashes = [
            plain_mix((plain_mix((index + 0x9E3779B97F4A7C15) & MASK) + key) & MASK) for index in range(size)
        ]
        return sorted(range(size), key=lambda index: (hashes[index], index))[position]
    bits = (size - 1).bit_length()
    low_bits, high_bits = bits // 2, bits - bits // 2
    while True:
        high, low = position >> low_bits, position % 2**low_bits
        for number in range(12):
            text = f"i{number}".encode()
            hasher = hashlib.sha256(b"samebits seed 1\0" + key.to_bytes(8, "little"))
            for part in (b"sround", text):
                hasher.update(len(part).to_bytes(8, "little") + part)
            round_key = int.from_bytes(hasher.digest()[:8], "little")
            if number % 2:
                low ^= (plain_mix((high + round_key) & MASK) >> 32) % 2**low_bits
            else:
                high ^= (plain_mix((low + round_key) & MASK) >> 32) % 2**high_bits
        position = high << low_bits | low
        if position < size:
            return position


@pytest.mark.parametrize("size", [1, 2, 10, 500, SORTED_UP_TO + 1, 100_003, BILLION, 2**40])
def test_it_is_what_the_documentation_defines(size):
    shuffle = Permutation(size, 2**63 + 5)

    for position in {0, size // 2, size - 1}:
        assert shuffle.at(position) == plain_at(size, 2**63 + 5, position)


def test_another_key_gives_another_order():
    orders = {tuple(Permutation(50, key).block(0, 50).tolist()) for key in range(100)}

    assert len(orders) == 100


@pytest.mark.parametrize("size", [3, 4])
def test_small_orders_are_equally_likely(size):
    count = math.factorial(size) * 400
    seen: dict[tuple[int, ...], int] = {}
    for key in range(count):
        order = tuple(Permutation(size, key).block(0, size).tolist())
        seen[order] = seen.get(order, 0) + 1

    cells = math.factorial(size)
    statistic = sum((seen.get(order, 0) - 400) ** 2 / 400 for order in seen)
    assert len(seen) == cells
    assert statistic < chi_square_bound(cells)


@pytest.mark.parametrize("size", [SORTED_UP_TO, 50_000, BILLION, BILLION + 7])
def test_a_block_spreads_evenly(size):
    """Chi-square of the values, and of pairs of successive ones."""
    values = Permutation(size, 5).block(0, min(size, 1_000_000)) / size
    cells = 32

    single = np.bincount((values * cells).astype(int), minlength=cells)
    pairs = (values[:-1:2] * cells).astype(int) * cells + (values[1::2] * cells).astype(int)
    counts = np.bincount(pairs, minlength=cells * cells)

    for found in (single, counts):
        expected = found.sum() / len(found)
        assert ((found - expected) ** 2 / expected).sum() < chi_square_bound(len(found))


@pytest.mark.parametrize("size", [SORTED_UP_TO, 50_000, BILLION])
def test_runs_are_as_long_as_those_of_chance(size):
    """Runs up and down (Knuth 3.3.2 G): of n values (2n-1)/3 runs, with variance (16n-29)/90."""
    values = Permutation(size, 7).block(0, min(size, 400_000))
    ups = np.diff(values) > 0
    runs = 1 + int(np.count_nonzero(ups[1:] != ups[:-1]))

    count = len(values)
    deviation = (runs - (2 * count - 1) / 3) / math.sqrt((16 * count - 29) / 90)
    assert abs(deviation) < 4.9


@pytest.mark.parametrize("size", [5000, 50_000])
def test_two_epochs_have_few_places_in_common(size):
    """Fixed points between two orders: one on average."""
    orders = [Permutation(size, key).block(0, size) for key in range(60)]
    common = [int(np.count_nonzero(first == second)) for first, second in itertools.pairwise(orders)]

    assert 20 < sum(common) < 110  # 59 expected, with a standard deviation of 7.7


@pytest.mark.parametrize("positions", [(-1, 3), (0, 11), (5, 4)])
def test_positions_outside_are_refused(positions):
    with pytest.raises(SamebitsError) as caught:
        Permutation(10, 0).block(*positions)
    assert caught.value.slug == "sampler"


@pytest.mark.parametrize("size", [-1, 2**62 + 1, 1.5, True])
def test_a_size_that_is_none_is_refused(size):
    with pytest.raises(SamebitsError) as caught:
        Permutation(size, 0)
    assert caught.value.slug == "sampler"
