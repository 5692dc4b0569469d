"""Orders as functions of (seed, epoch, position)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from samebits.data.samplers import BatchByLength, Listed, Sampler, Sequential, Shuffled, Weighted
from samebits.errors import SamebitsError
from samebits.rng.active import PROCESS

GOLDEN_WEIGHTED = [1, 3, 2, 3, 2, 2, 0, 3, 1, 3, 2, 1]
LENGTHS = [(7 * number) % 23 for number in range(103)]
SAMPLERS = [
    Sequential(103),
    Shuffled(103),
    Shuffled(40_000),
    Listed(range(5, 108)),
    Listed([3, 1, 1, 2], shuffle=True),
    Weighted([1.0, 0.0, 2.5, 1e-9], 103),
    BatchByLength(LENGTHS, 8, window=3),
]


def whole(sampler, epoch=0, seed=3):
    return sampler.indices(epoch, 0, len(sampler), seed=seed).tolist()


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_any_part_is_that_part_of_the_whole(sampler):
    assert isinstance(sampler, Sampler)
    full = whole(sampler, epoch=2)

    for start in range(0, len(full), max(1, len(full) // 23)):
        stop = min(start + 17, len(full))
        part = sampler.indices(2, start, stop, seed=3)
        assert part.dtype == np.int64
        assert part.tolist() == full[start:stop]


@pytest.mark.parametrize("sampler", SAMPLERS[1:2] + SAMPLERS[5:], ids=lambda sampler: type(sampler).__name__)
def test_epochs_and_seeds_differ(sampler):
    orders = [whole(sampler, epoch, seed) for epoch in range(3) for seed in range(3)]

    assert len({tuple(order) for order in orders}) == 9


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_positions_outside_are_refused(sampler):
    with pytest.raises(SamebitsError) as caught:
        sampler.indices(0, 0, len(sampler) + 1, seed=3)
    assert caught.value.slug == "sampler"


def test_orders_have_identities():
    identities = [sampler.identity() for sampler in SAMPLERS] + [Shuffled(104).identity()]

    assert len(set(identities)) == len(identities)
    assert all(0 <= identity < 2**63 for identity in identities)
    assert Weighted([1, 2]).identity() == Weighted([1, 2]).identity()


def test_shuffled_and_listed_hold_every_index_once():
    assert sorted(whole(Shuffled(103))) == list(range(103))
    assert sorted(whole(Listed(range(5, 108), shuffle=True))) == list(range(5, 108))
    assert whole(Listed([4, 4, 9])) == [4, 4, 9]


def test_repeats_are_known():
    assert Listed([4, 4, 9]).repeats
    assert not Listed([4, 9]).repeats
    assert Weighted([1, 2]).repeats
    assert not Shuffled(3).repeats


@pytest.mark.parametrize("indices", [[1.5], [-1, 2], [[1, 2]], ["a"]])
def test_indices_that_are_none_are_refused(indices):
    with pytest.raises(SamebitsError) as caught:
        Listed(indices)
    assert caught.value.slug == "sampler"


def test_the_run_seed_is_taken(monkeypatch):
    monkeypatch.setattr(PROCESS, "seed", 99)
    monkeypatch.setattr(PROCESS, "base_seed", 3)

    assert Shuffled(50).indices(1, 0, 50).tolist() == whole(Shuffled(50), 1, 3)


def test_without_a_seed_there_is_no_order():
    with pytest.raises(SamebitsError) as caught:
        Shuffled(50).indices(1, 0, 50)
    assert caught.value.slug == "no-seed"


def test_weights_are_kept():
    found = np.array(whole(Weighted([1, 0, 3, 4], 80_000)))

    counts = np.bincount(found, minlength=4)
    assert counts[1] == 0
    expected = np.array([10_000, 0, 30_000, 40_000])
    assert (((counts - expected) ** 2)[[0, 2, 3]] / expected[[0, 2, 3]]).sum() < 25


def test_weighted_values_are_fixed():
    """They never change: a saved position would point elsewhere."""
    assert whole(Weighted([1, 2, 3, 4], 12)) == GOLDEN_WEIGHTED
    assert whole(Weighted([0.1, 0.2, 0.3, 0.4], 12)) == GOLDEN_WEIGHTED


def test_weights_of_any_size_and_kind():
    huge = Weighted([1e300, 5e299, 0.0], 1000)
    tiny = Weighted([2e-320, 1e-320, 0.0], 1000)
    tensor = Weighted(torch.tensor([2.0, 1.0, 0.0]).numpy(), 1000)
    large = Weighted(np.array([2**63, 2**62, 0], dtype=np.uint64), 1000)

    assert whole(huge) == whole(tensor) == whole(large)
    assert set(whole(tiny)) == {0, 1}


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([0, 0], "all weights are 0"),
        ([1, -1], "weight 1 is -1"),
        ([1, float("nan")], "weight 1 is nan"),
        ([1, float("inf")], "weight 1 is inf"),
        ([], "shape (0,)"),
        ([[1]], "shape (1, 1)"),
        (["a"], "of type"),
    ],
)
def test_weights_that_are_none_are_refused(weights, said):
    with pytest.raises(SamebitsError, match="expected") as caught:
        Weighted(weights)
    assert said in str(caught.value)
    assert caught.value.slug == "sampler"


def test_batches_by_length_hold_every_sample_once_and_are_alike():
    sampler = BatchByLength(LENGTHS, 8, window=6)
    order = whole(sampler)
    batches = [order[start : start + 8] for start in range(0, 96, 8)]
    spread = [max(LENGTHS[i] for i in batch) - min(LENGTHS[i] for i in batch) for batch in batches]

    assert sorted(order) == list(range(103))
    assert max(spread) <= 8  # of 22
    heads = [[LENGTHS[batch[0]] for batch in batches] for batches in (batches[:6], batches[6:])]
    assert all(head != sorted(head) for head in heads)  # the batches of a window are shuffled


@pytest.mark.parametrize("arguments", [([[1]], 2, 1), (["a"], 2, 1), ([1], 0, 1), ([1], 2, 0)])
def test_lengths_that_are_none_are_refused(arguments):
    lengths, size, window = arguments
    with pytest.raises(SamebitsError) as caught:
        BatchByLength(lengths, size, window=window)
    assert caught.value.slug == "sampler"
