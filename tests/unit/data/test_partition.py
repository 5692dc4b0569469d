"""The cut of the global order into batches and parts of ranks."""

from __future__ import annotations

import pytest

from samebits.data.permutation import Partition
from samebits.errors import SamebitsError

CUTS = [
    (size, batch, world) for size in (0, 1, 3, 7, 8, 23, 24, 25) for batch in (1, 2, 5) for world in (1, 2, 4)
]


def ranks(size, batch_size, world_size, tail="short"):
    return [Partition(size, batch_size, world_size, rank, tail) for rank in range(world_size)]


def positions(cut, start=0):
    return [list(range(*cut.part(batch))) for batch in cut.batches_from(start)]


@pytest.mark.parametrize(("size", "batch", "world"), CUTS)
@pytest.mark.parametrize("tail", ["short", "drop", "pad"])
def test_ranks_hold_each_position_once_in_order(size, batch, world, tail):
    cuts = ranks(size, batch, world, tail)
    step = batch * world
    end = {"short": size, "drop": size // step * step, "pad": -(-size // step) * step}[tail]

    for number in range(len(cuts[0])):
        parts = [list(range(*cut.part(number))) for cut in cuts]
        together = [place for part in parts for place in part]
        assert together == list(range(number * step, min(end, (number + 1) * step)))
        assert max(map(len, parts)) - min(map(len, parts)) <= (tail == "short")
    assert len(cuts[0]) * step >= end > (len(cuts[0]) - 1) * step or end == 0
    assert all(part for cut in cuts for part in positions(cut))


@pytest.mark.parametrize(("size", "batch", "world"), CUTS)
def test_what_is_left_is_the_end_of_the_whole(size, batch, world):
    for cut in ranks(size, batch, world):
        full = positions(cut)
        for done in range(len(cut) + 1):
            at = min(done * cut.global_batch, cut.positions)
            assert positions(cut, at) == full[done:]


def test_ranks_without_a_last_sample_are_counted():
    assert [cut.ranks_without_last for cut in ranks(17, 2, 4)] == [3] * 4
    assert [len(positions(cut)) for cut in ranks(17, 2, 4)] == [3, 2, 2, 2]
    assert Partition(17, 2, 4, 0, "drop").ranks_without_last == 0
    assert Partition(16, 2, 4).ranks_without_last == 0


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        ((5, 0, 1, 0, "short"), "loader-option"),
        ((5, 1, 2, 2, "short"), "rank"),
        ((5, 1, 2, -1, "short"), "rank"),
        ((5, 1, 1, 0, "long"), "loader-option"),
    ],
)
def test_cuts_that_are_none_are_refused(arguments, slug):
    with pytest.raises(SamebitsError) as caught:
        Partition(*arguments)
    assert caught.value.slug == slug
