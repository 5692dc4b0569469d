"""`samebits.DataLoader`: the same order and draws whatever loads them, and a position that can be saved."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils import data as torch_data

import samebits
from samebits.data.samplers import Shuffled, Weighted
from samebits.determinism.context import deterministic
from samebits.errors import SamebitsError, SamebitsWarning
from samebits.rng.samples import EpochKeys

sys.path.insert(0, str(Path(__file__).parent))
from loading import Items, Plain, draws, epochs, flat, loader, of_ranks

sys.path.pop(0)

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
WORKERS = [
    {"num_workers": 1},
    {"num_workers": 2},
    {"num_workers": 3, "prefetch_factor": 5},
    {"num_workers": 2, "persistent_workers": True},
    {"num_workers": 2, "multiprocessing_context": "spawn"},
]


def states():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()


@pytest.mark.parametrize("options", WORKERS, ids=str)
def test_workers_change_nothing(options):
    if options.get("multiprocessing_context") == "spawn":
        sys.path.insert(0, str(Path(__file__).parent))  # spawned workers import this module's neighbour
    try:
        found = epochs(loader(**options), 2)
    finally:
        if options.get("multiprocessing_context") == "spawn":
            sys.path.pop(0)

    assert found == epochs(loader(), 2)


def test_every_sample_comes_once_with_draws_of_its_own():
    found = flat(epochs(loader(), 2))

    assert [sorted(sample[0] for sample in half) for half in (found[:53], found[53:])] == [
        list(range(53))
    ] * 2
    assert [sample[0] for sample in found[:53]] != [sample[0] for sample in found[53:]]
    assert all(len(set(column)) == 106 for column in list(zip(*found, strict=True))[1:])


def test_the_order_is_the_samplers_and_draws_follow_from_the_key():
    found = flat(epochs(loader(), 2))[53:]

    assert [sample[0] for sample in found] == Shuffled(53).indices(1, 0, 53, seed=3).tolist()
    key = EpochKeys(3, 1).sample(found[20][0])
    assert found[20][1] == random.Random(int.from_bytes(key[:16], "little")).getrandbits(60)


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("tail", ["short", "drop", "pad"])
@pytest.mark.filterwarnings("ignore:.*(the last batch|repeats)")
def test_ranks_change_nothing(world_size, tail):
    def ranks():
        share = {"batch_size": 8 // world_size, "world_size": world_size, "tail": tail}
        return [loader(rank=rank, **share) for rank in range(world_size)]

    found = of_ranks(ranks, 2)
    assert found == of_ranks(lambda: [loader(tail=tail)], 2)
    assert len(found) == {"short": 106, "drop": 96, "pad": 112}[tail]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stop", [1, 3, 6, 7, 8, 14])
def test_it_goes_on_where_it_was(stop, workers):
    whole = loader()
    expected = [batch for _ in range(2) for batch in whole]
    first = loader(num_workers=workers)
    seen, state = [], {}
    for _ in range(2):
        for batch in first:
            seen.append(batch)
            state = json.loads(json.dumps(first.state_dict()))
            if len(seen) == stop:
                break
        if len(seen) == stop:
            break

    second = loader(num_workers=2 - workers)
    second.load_state_dict(state)
    assert second.state_dict() == state
    for _ in range(state["epoch"], 2):
        seen += second
    assert seen == expected
    assert all(type(value) is int for value in state.values())


def test_it_goes_on_with_another_number_of_ranks():
    expected = flat(epochs(loader(), 2))
    single = loader()
    iterator = iter(single)
    seen = [sample for _ in range(3) for sample in next(iterator)]
    state = single.state_dict()

    def ranks():
        pair = [loader(batch_size=4, world_size=2, rank=rank) for rank in range(2)]
        for one in pair:
            one.load_state_dict(state)
        return pair

    assert seen + of_ranks(ranks, 2) == expected


def test_the_position_is_what_was_handed_over_not_what_was_loaded():
    found = loader(num_workers=2, prefetch_factor=4)
    iterator = iter(found)
    assert found.state_dict()["position"] == 0
    next(iterator)
    assert found.state_dict()["position"] == 8


def test_a_loop_that_is_left_ends_its_epoch():
    expected = epochs(loader(), 2)
    found = loader(num_workers=1)
    for batch in found:
        assert batch == expected[0][0]
        assert (found.state_dict()["epoch"], found.state_dict()["position"]) == (0, 8)
        break

    assert (found.state_dict()["epoch"], found.state_dict()["position"]) == (1, 0)
    assert list(found) == expected[1]
    assert found.state_dict()["epoch"] == 2


def test_a_state_of_the_last_batch_ends_the_epoch_when_it_is_resumed():
    expected = epochs(loader(), 2)
    first, second = loader(), loader()
    for _ in first:
        state = first.state_dict()
    second.load_state_dict(state)

    assert state["position"] == 53
    assert list(second) == []
    assert list(second) == expected[1]


def test_epochs_can_be_chosen():
    expected = epochs(loader(), 3)
    found = loader()
    found.set_epoch(2)
    assert list(found) == expected[2]
    found.set_epoch(1)
    assert list(found) == expected[1]
    iterator = iter(loader())
    next(iterator)

    resumed, source = loader(), loader()
    passing = iter(source)
    next(passing)
    resumed.load_state_dict(source.state_dict())
    resumed.set_epoch(0)  # as scripts do at the beginning of each epoch
    assert list(resumed) == expected[0][1:]
    resumed.set_epoch(0)
    assert list(resumed) == expected[0]


def test_the_next_pass_is_the_next_epoch_while_the_last_is_held():
    """As Lightning does: it counts batches, and never reads to the end."""
    expected = epochs(loader(), 3)
    found, iterator = loader(), None
    for epoch in range(3):
        iterator = iter(found)
        assert [next(iterator) for _ in range(len(found))] == expected[epoch]
        assert found.state_dict()["epoch"] == epoch
    assert iterator is not None


@pytest.mark.parametrize("workers", [0, 1])
def test_an_epoch_that_is_told_after_the_iterator_was_made(workers):
    expected = epochs(loader(), 3)
    found = loader(num_workers=workers, persistent_workers=workers > 0)
    iterator = iter(found)
    found.sampler.set_epoch(2)
    found.sampler.set_epoch(2)
    assert list(iterator) == expected[2]

    found.load_state_dict({**found.state_dict(), "epoch": 0, "position": 16})
    iterator = iter(found)
    found.sampler.set_epoch(0)
    assert list(iterator) == expected[0][2:]


@pytest.mark.parametrize("workers", [0, 2])
def test_generators_of_the_process_stay_where_they_are(workers):
    found = loader(num_workers=workers)
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    before = states()
    dataset_state = found.dataset.rng.bit_generator.state

    for _ in found:
        assert states() == before
    assert found.dataset.rng.bit_generator.state == dataset_state


@pytest.mark.parametrize("workers", [0, 1])
def test_under_control_it_is_the_same(workers):
    expected = epochs(loader(), 2)
    with deterministic(seed=3, on_drift="error") as control:
        found = loader(seed=None, num_workers=workers, persistent_workers=workers > 0)
        got = epochs(found, 2)
        control.check()

    assert got == expected


class Unseeded(torch_data.Dataset):
    """Makes a generator for each item."""

    def __len__(self):
        return 20

    def __getitem__(self, index):
        return int(np.random.default_rng().integers(2**60)), random.Random().getrandbits(60)


def test_generators_made_in_a_sample_without_a_seed_follow_from_it_under_control():
    with deterministic(seed=3):
        found = [flat(epochs(loader(Unseeded(), num_workers=workers), 2)) for workers in (0, 1, 2)]

    assert found[0] == found[1] == found[2]
    assert len(set(found[0])) == 40


def test_an_index_that_comes_twice_draws_twice():
    found = flat(epochs(loader(Items(3), sampler=Weighted([1, 1, 1], 30))))
    again = flat(epochs(loader(Items(3), sampler=Weighted([1, 1, 1], 30), num_workers=2)))

    assert found == again
    assert len(set(found)) == 30


def test_collate_has_a_key_of_its_own():
    def mixed(samples):
        return draws(), samples

    found = [epochs(loader(collate_fn=mixed, num_workers=workers), 2) for workers in (0, 2)]
    keys = [batch[0] for batches in found[0] for batch in batches]

    assert found[0] == found[1]
    assert len(set(keys)) == len(keys) == 14


def test_single_samples():
    found = list(loader(Plain(5), None, collate_fn=None, shuffle=False))

    assert found == [0, 1, 2, 3, 4]


def test_the_default_collate_function():
    found = list(loader(Plain(5), 2, collate_fn=None, shuffle=False))

    assert [batch.tolist() for batch in found] == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_the_same_wherever_samples_are_loaded(threads):
    def used(samples):
        return torch.get_num_threads()

    before = torch.get_num_threads()
    found = [list(loader(Plain(3), num_workers=n, collate_fn=used, worker_threads=threads)) for n in (0, 1)]

    assert found == [[threads], [threads]]
    assert torch.get_num_threads() == before


def test_a_worker_sees_the_users_dataset():
    class Marked(Plain):
        mark = 0

        def __getitem__(self, index):
            return self.mark

    def init(worker):
        info = torch_data.get_worker_info()
        info.dataset.mark = type(info.dataset).__name__

    assert flat(epochs(loader(Marked(3), num_workers=1, worker_init_fn=init))) == ["Marked"] * 3


def test_it_looks_like_torchs():
    dataset = Items()
    found = loader(dataset, drop_last=True)

    assert isinstance(found, torch_data.DataLoader)
    assert (found.dataset, found.batch_size, found.num_workers, len(found)) == (dataset, 8, 0, 6)
    assert found.drop_last
    assert len(loader()) == len(list(loader())) == 7
    assert len(samebits.DataLoader(Plain(), 8, True, seed=3)) == 7


def test_parts_of_it_build_no_other_loader():
    found = loader()
    rebuilt = torch_data.DataLoader(found.dataset, batch_sampler=found.batch_sampler)

    assert len(rebuilt) == 7
    with pytest.raises(SamebitsError) as caught:
        next(iter(rebuilt))
    assert caught.value.slug == "loader-rebuilt"


def test_loaders_with_names_differ():
    orders = [flat(epochs(loader(name=name))) for name in ("", "a", "b", "a")]

    assert orders[1] == orders[3]
    assert len({tuple(order) for order in orders}) == 3


SIZES = Plain()
EQUAL = [
    (torch_data.RandomSampler(SIZES), {"shuffle": True}),
    (torch_data.SequentialSampler(SIZES), {"shuffle": False}),
    ([5, 2, 9], {"sampler": [5, 2, 9]}),
    (torch.tensor([5, 2, 9]), {"sampler": [5, 2, 9]}),
    (torch_data.WeightedRandomSampler([1.0, 2.0], 9), {"sampler": Weighted([1, 2], 9)}),
]


@pytest.mark.parametrize(("sampler", "options"), EQUAL, ids=lambda value: type(value).__name__)
def test_samplers_of_torch_that_have_no_state(sampler, options):
    expected = flat(epochs(loader(Plain(), **options)))

    assert flat(epochs(loader(Plain(), sampler=sampler))) == expected
    batches = torch_data.BatchSampler(sampler, 4, drop_last=True)
    short = samebits.DataLoader(Plain(), batch_sampler=batches, seed=3, collate_fn=list)
    assert flat(epochs(short)) == expected[: len(expected) // 4 * 4]


class Own(torch_data.Sampler):
    """A sampler of the user's own, in the manner of torch."""

    def __iter__(self):
        return iter([0])


REFUSED = [
    ({"sampler": Own()}, "sampler"),
    ({"sampler": torch_data.RandomSampler(SIZES, generator=torch.Generator())}, "sampler"),
    ({"sampler": torch_data.RandomSampler(SIZES, replacement=True)}, "sampler"),
    ({"sampler": torch_data.DistributedSampler(SIZES, 2, 0)}, "sampler"),
    ({"shuffle": None, "batch_sampler": Own()}, "sampler"),
    ({"generator": torch.Generator()}, "loader-option"),
    ({"num_workers": 1, "in_order": False}, "loader-option"),
    ({"drop_last": True, "tail": "pad"}, "loader-option"),
    ({"tail": "long"}, "loader-option"),
    ({"world_size": 2}, "loader-option"),
    ({"world_size": 2, "rank": 2}, "rank"),
    ({"worker_threads": 0}, "loader-option"),
    ({"seed": None}, "no-seed"),
    ({"seed": -1}, "seed"),
    ({"batch_size": "4"}, "loader-option"),
    ({"batch_size": 0}, "loader-option"),
]


@pytest.mark.parametrize(("options", "slug"), REFUSED)
def test_what_cannot_be_met_is_refused(options, slug):
    with pytest.raises(SamebitsError) as caught:
        loader(**options)
    assert caught.value.slug == slug


CHANGED = [
    ({"seed": 4}, "seed is 3; expected 4"),
    ({"dataset": Items(54)}, "size is 53; expected 54"),
    ({"batch_size": 9}, "global_batch is 8; expected 9"),
    ({"shuffle": False}, "order is"),
]


@pytest.mark.parametrize(("options", "said"), CHANGED)
def test_a_state_of_other_data_is_refused(options, said):
    state = loader().state_dict()
    with pytest.raises(SamebitsError) as caught:
        loader(**options).load_state_dict(state)
    assert said in str(caught.value)
    assert caught.value.slug == "loader-state"


@pytest.mark.parametrize(
    "change",
    [
        {"position": 3},
        {"position": 54},
        {"position": -8},
        {"epoch": -1},
        {"version": 2},
        {"epoch": 1.5},
        None,
    ],
)
def test_a_state_that_is_none_is_refused(change):
    found = loader()
    state = {"a": 1} if change is None else {**found.state_dict(), **change}
    with pytest.raises(SamebitsError) as caught:
        found.load_state_dict(state)
    assert caught.value.slug == "loader-state"


def test_what_a_tail_does_is_told():
    with pytest.warns(SamebitsWarning, match="3 get none"):
        loader(Plain(17), 2, world_size=4, rank=0)
    with pytest.warns(SamebitsWarning, match="repeats 7 samples"):
        loader(Plain(17), 2, world_size=4, rank=0, tail="pad")


def test_ranks_are_found_in_the_environment(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert flat(epochs(loader(Plain(8), 2))) == flat(epochs(loader(Plain(8), 2, world_size=2, rank=1)))
    monkeypatch.setenv("WORLD_SIZE", "many")
    with pytest.raises(SamebitsError) as caught:
        loader()
    assert caught.value.slug == "rank"


def test_ranks_share_the_order_when_each_has_a_seed_of_its_own(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    parts = []
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        with deterministic(seed=3, per_rank=True):
            parts.append(flat(epochs(loader(Plain(8), 2, seed=None))))

    assert sorted(parts[0] + parts[1]) == list(range(8))


def test_persistent_workers_serve_one_iteration():
    found = loader(num_workers=1, persistent_workers=True)
    first = iter(found)
    next(first)
    second = iter(found)
    next(second)
    with pytest.raises(SamebitsError) as caught:
        next(first)
    assert caught.value.slug == "loader-iteration"


class Failing(Plain):
    """Fails at one item."""

    def __getitem__(self, index):
        if index == 20:
            raise ValueError("this item is broken")
        return index


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_the_dataset_is_the_users(workers):
    random.seed(1)
    before = states()
    with pytest.raises(ValueError, match="this item is broken"):
        list(loader(Failing(), num_workers=workers))
    assert states() == before


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stop_in_the_dataset_does_not_end_the_epoch(workers):
    class Stopping(Plain):
        def __getitem__(self, index):
            raise StopIteration

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        list(loader(Stopping(), num_workers=workers))


class Nesting(Plain):
    """Loads samples of another loader, and then draws."""

    def __getitem__(self, index):
        return index, flat(epochs(loader(Items(3)))), draws()


def test_a_sample_that_loads_others_goes_on_with_its_own_numbers():
    found = flat(epochs(loader(Nesting(9))))

    assert found == flat(epochs(loader(Nesting(9), num_workers=2)))
    assert len({sample[2] for sample in found}) == 9


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda found: pickle.loads(pickle.dumps(found))])
def test_a_copy_goes_on_by_itself(copied):
    expected = epochs(loader(), 3)
    found = loader()
    list(found)
    twin = copied(found)
    assert epochs(twin, 2) == expected[1:]
    assert found.state_dict()["epoch"] == 1
    twin.sampler.set_epoch(0)
    assert list(twin) == expected[0]
    assert list(found) == expected[1]


def test_empty_datasets():
    assert list(loader(Plain(0))) == []
    assert len(loader(Plain(0))) == 0


def test_a_billion_samples_begin_at_once():
    found = loader(range(10**9), 4, collate_fn=list)

    assert len(next(iter(found))) == 4
    assert found.state_dict()["size"] == 10**9


class FailsAt(Plain):
    """One sample cannot be read."""

    def __getitem__(self, index):
        if index == 0:
            raise ValueError("a file that cannot be read")
        return index


def reads_on(found):
    """Passes over batches that fail, as scripts do; each with the state after it."""
    iterator, read = iter(found), []
    while True:
        with contextlib.suppress(ValueError):
            batch = next(iterator, None)
            if batch is None:
                return read
            read.append((batch, found.state_dict()))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_after_a_batch_that_failed_and_was_passed_over(workers):
    whole = reads_on(loader(FailsAt(24), num_workers=workers, batch_size=4))
    assert len(whole) == 5

    for number, (_, state) in enumerate(whole):
        resumed = loader(FailsAt(24), num_workers=workers, batch_size=4)
        resumed.load_state_dict(state)
        assert [batch for batch, _ in reads_on(resumed)] == [batch for batch, _ in whole[number + 1 :]]


@pytest.mark.parametrize("rank", ["a", 0.5, True])
def test_a_rank_that_is_none_is_refused(rank):
    with pytest.raises(SamebitsError, match="rank is"):
        loader(world_size=2, rank=rank)


@pytest.mark.parametrize("dataset", [5, object()])
def test_a_dataset_without_a_length_is_refused(dataset):
    with pytest.raises(SamebitsError, match="has no length"):
        loader(dataset)
