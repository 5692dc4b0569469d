"""Iterable datasets: the same elements in the same order whoever reads them, none lost on resume."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import samebits
from samebits.data._shards import ShardOrder, ShardStreams
from samebits.errors import SamebitsError, SamebitsWarning

sys.path.insert(0, str(Path(__file__).parent))
from loading import Lines, Stream, epochs, flat

sys.path.pop(0)

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:the ranks read different shards"),
]
SIZES = [9 - number % 4 for number in range(8)]
EVERY = sorted((shard, number) for shard, size in enumerate(SIZES) for number in range(size))


def lines(dataset=None, batch_size=4, **options):
    options = {"seed": 3, "shuffle": True, "shuffle_window": 5, "collate_fn": list, **options}
    return samebits.DataLoader(Lines() if dataset is None else dataset, batch_size, **options)


WORKERS = [
    {"num_workers": 1},
    {"num_workers": 2},
    {"num_workers": 3, "prefetch_factor": 5},
    {"num_workers": 2, "persistent_workers": True},
]
LANES = [None, (1, 1), (4, 1), (1, 4), (2, 3)]


@pytest.mark.parametrize("lanes", LANES, ids=str)
@pytest.mark.parametrize("options", WORKERS, ids=str)
def test_workers_change_nothing(options, lanes):
    expected = epochs(lines(lanes=lanes), 2)

    assert epochs(lines(lanes=lanes, **options), 2) == expected
    for batches in expected:
        assert sorted(sample[:2] for sample in flat([batches])) == EVERY


def test_elements_draw_numbers_of_their_own():
    found = flat(epochs(lines(), 2))

    assert all(len(set(column)) == len(found) for column in list(zip(*found, strict=True))[2:])


@pytest.mark.parametrize("lanes", LANES, ids=str)
@pytest.mark.parametrize("world_size", [2, 4])
def test_ranks_change_nothing(world_size, lanes):
    expected = [batch for batches in epochs(lines(lanes=lanes), 2) for batch in batches]
    ranks = [
        lines(lanes=lanes, batch_size=4 // world_size, world_size=world_size, rank=rank, num_workers=rank % 2)
        for rank in range(world_size)
    ]
    merged = {}
    for epoch in range(2):
        for found in ranks:
            for batch in found:
                at = (epoch, found.state_dict()["position"])
                merged[at] = merged.get(at, []) + batch

    assert [merged[at] for at in sorted(merged)] == expected


@pytest.mark.parametrize("window", [1, 5, 100])
@pytest.mark.parametrize("stop", [1, 2, 7, 11, 15, 19])
def test_it_goes_on_where_it_was(stop, window):
    expected = epochs(lines(shuffle_window=window), 2)
    first = lines(shuffle_window=window, num_workers=2)
    seen, state = [], {}
    for batch in first:
        seen.append(batch)
        state = first.state_dict()
        if len(seen) == stop:
            break

    second = lines(shuffle_window=window, num_workers=1)
    second.load_state_dict(state)
    assert seen + list(second) == expected[0]
    assert list(second) == expected[1]


def test_windows_shuffle_and_epochs_differ():
    plain = flat(epochs(lines(shuffle=False), 1))
    shuffled = [[sample[:2] for sample in flat([batches])] for batches in epochs(lines(), 2)]

    assert [sample[:2] for sample in plain] != shuffled[0] != shuffled[1]
    assert sorted(shuffled[0]) == sorted(shuffled[1]) == EVERY


def test_short_batches_are_dropped():
    found = epochs(lines(tail="drop"))[0]

    assert {len(batch) for batch in found} == {4}
    assert epochs(lines(tail="drop", num_workers=2))[0] == found


@pytest.mark.parametrize("window", [1, 7])
def test_one_without_shards_is_read_by_one(window):
    options = {"dataset": Stream(), "shuffle": window > 1, "shuffle_window": window}
    expected = epochs(lines(**options), 2)
    found = lines(**options, num_workers=1)
    seen = [next(iter(found))]
    state = {**found.state_dict(), "epoch": 0, "position": 4}
    resumed = lines(**options)
    resumed.load_state_dict(state)

    assert sorted(sample[0] for sample in flat(expected[:1])) == list(range(30))
    assert epochs(lines(**options, num_workers=1), 2) == expected
    assert seen + list(resumed) == expected[0]


def test_the_state_is_whole_numbers():
    state = lines().state_dict()

    assert state["size"] == 8
    assert all(type(value) is int for value in state.values())


def test_generators_of_the_process_stay_where_they_are():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    found = torch.stack([torch.rand(()) for _, _ in zip(range(3), lines(), strict=False)])

    assert torch.equal(found, expected)


@pytest.mark.parametrize(
    "options",
    [
        {"dataset": Stream(), "num_workers": 2},
        {"dataset": Stream(), "world_size": 2, "rank": 0},
        {"tail": "pad"},
        {"tail": "drop", "world_size": 2, "rank": 0},
        {"sampler": [1], "shuffle": None},
        {"lanes": (3, 1)},
        {"lanes": 4},
        {"lanes": (0, 1)},
        {"dataset": Lines(0)},
        {"shuffle_window": 0},
    ],
    ids="-".join,
)
def test_what_cannot_be_met_is_refused(options):
    with pytest.raises(SamebitsError) as caught:
        lines(**options)
    assert caught.value.slug == "loader-option"


def test_it_has_no_length():
    with pytest.raises(TypeError):
        len(lines())


@pytest.mark.parametrize("options", [{"lanes": (2, 2)}, {"shuffle_window": 6}, {"shuffle": False}], ids=str)
def test_a_state_of_another_order_is_refused(options):
    state = lines().state_dict()
    with pytest.raises(SamebitsError) as caught:
        lines(**options).load_state_dict(state)
    assert caught.value.slug == "loader-state"


def test_ranks_may_get_different_numbers_of_batches():
    with pytest.warns(SamebitsWarning, match="different numbers"):
        lines(world_size=2, rank=0, batch_size=2)


@pytest.mark.parametrize(
    ("shards", "batch", "expected"), [(1, 32, (1, 1)), (16, 32, (4, 4)), (7, 7, (1, 4)), (64, 8, (8, 4))]
)
def test_streams_follow_from_shards_and_batch(shards, batch, expected):
    assert ShardStreams.of(None, shards, batch) == ShardStreams(*expected)


def test_the_pieces_of_a_batch():
    streams = ShardStreams(2, 3)

    assert list(streams.pieces(0, 8, 8)) == [(0, 0, 4), (1, 0, 4)]
    assert list(streams.pieces(32, 40, 8)) == [(2, 4, 8), (3, 4, 8)]
    assert list(streams.pieces(34, 38, 8)) == [(2, 6, 8), (3, 4, 6)]


def test_every_shard_is_in_one_stream():
    order = ShardOrder(11, ShardStreams(2, 2), shuffle=True, window=1)
    dealt = [order.shards_of_stream(stream, 3, 0) for stream in range(4)]

    assert sorted(shard for shards in dealt for shard in shards) == list(range(11))


class FailsOnce:
    """A shard with an element that cannot be read."""

    num_shards = 1

    def iter_shard(self, number):
        """Fails at the sixth."""
        for place in range(12):
            if place == 5:
                raise ValueError("a line that cannot be read")
            yield number, place


def test_what_follows_an_element_that_could_not_be_read_is_not_left_out_unsaid():
    iterator = iter(samebits.DataLoader(FailsOnce(), 2, seed=3, collate_fn=list))
    assert [next(iterator), next(iterator)] == [[(0, 0), (0, 1)], [(0, 2), (0, 3)]]
    with pytest.raises(ValueError, match="cannot be read"):
        next(iterator)

    with pytest.raises(SamebitsError, match="reading a shard failed before"):
        next(iterator)
