"""Keyed samples on plain loaders of torch: what is drawn follows from the sample, not from the worker."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Subset,
    get_worker_info,
)

import samebits
from samebits.determinism.context import deterministic
from samebits.errors import SamebitsError

pytestmark = [
    pytest.mark.filterwarnings("ignore:it is too late in this process"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]


class Items(Dataset):
    """Its index and draws."""

    def __init__(self, size=21):
        self.size = size
        self.rng = np.random.default_rng(0)

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        torch_draw = int(torch.randint(2**60, (1,)))
        made = int(np.random.default_rng().integers(2**60))
        own = int(self.rng.integers(2**60))
        return (int(index), random.getrandbits(60), int(np.random.randint(2**60)), torch_draw, made, own)


class Elements(IterableDataset):
    """Numbers and draws."""

    def __iter__(self):
        for number in range(11):
            yield number, random.random(), float(torch.rand(()))


def run(count=2, *, keyed=True, dataset=None, **options):
    """Epochs of a loader under control."""
    options = {"batch_size": 4, "shuffle": True, "collate_fn": list, **options}
    with deterministic(seed=3, keyed_samples=keyed):
        loader = DataLoader(Items() if dataset is None else dataset, **options)
        return [list(loader) for _ in range(count)]


WORKERS = [
    {"num_workers": 1},
    {"num_workers": 2},
    {"num_workers": 3, "prefetch_factor": 4},
    {"num_workers": 2, "persistent_workers": True},
]


@pytest.mark.parametrize("options", WORKERS, ids=str)
def test_workers_change_nothing(options):
    expected = run()

    assert run(**options) == expected
    columns = list(zip(*[one for batches in expected for batch in batches for one in batch], strict=True))
    assert all(len(set(column)) == 42 for column in columns[1:])


def test_without_it_workers_change_draws():
    assert run(keyed=False) != run(keyed=False, num_workers=2)


SAMPLERS = [
    {"sampler": RandomSampler(Items(), replacement=True)},
    {"sampler": [3, 3, 3, 1, 3]},
    {"batch_sampler": BatchSampler([1, 2, 1, 2, 5], 2, drop_last=False)},
    {"batch_sampler": [[1, 2], [2, 1, 1]]},
    {"sampler": RandomSampler(Items(), generator=torch.Generator())},
]


@pytest.mark.parametrize("options", SAMPLERS)
def test_an_index_that_comes_twice_draws_twice(options):
    if "batch_sampler" in options:
        options = {**options, "batch_size": 1}

    def restarted(workers):
        if getattr(options.get("sampler"), "generator", None) is not None:
            options["sampler"].generator.manual_seed(1)
        return run(1, **{"shuffle": False, **options, "num_workers": workers})[0]

    found = restarted(0)
    flat = [one for batch in found for one in batch]

    assert restarted(2) == found
    assert len({one[1:] for one in flat}) == len(flat)


def test_single_samples_and_other_parts_of_datasets():
    assert run(batch_size=None, collate_fn=None) == run(batch_size=None, collate_fn=None, num_workers=1)
    subset = Subset(Items(), [4, 2, 8, 19])
    assert run(dataset=subset) == run(dataset=subset, num_workers=2)
    keys = {"a": 1, "b": 2}
    found = [run(dataset=keys, sampler=["a", "b"], shuffle=False, num_workers=n) for n in (0, 1)]
    assert found == [[[[1, 2]]] * 2] * 2


def test_ranks_draw_what_one_process_draws():
    def rank(number):
        sampler = DistributedSampler(Items(20), 2, number, shuffle=False)
        return run(1, dataset=Items(20), sampler=sampler, shuffle=False)[0]

    whole = sorted(one for batch in run(1, dataset=Items(20), shuffle=False)[0] for one in batch)
    parts = sorted(one for number in (0, 1) for batch in rank(number) for one in batch)
    assert parts == whole


def test_collate_is_keyed():
    def mixed(samples):
        return random.random(), len(samples)

    found = [run(collate_fn=mixed, num_workers=workers) for workers in (0, 2)]
    assert found[0] == found[1]
    assert len({batch[0] for batches in found[0] for batch in batches}) == 12


def test_loaders_differ():
    with deterministic(seed=3, keyed_samples=True):
        loaders = [DataLoader(Items(), collate_fn=list) for _ in range(2)]
        found = [[batch[0] for batch in loader] for loader in loaders]
    assert all(first[1:] != second[1:] for first, second in zip(*found, strict=True))


def test_generators_of_the_process_stay_where_they_are():
    with deterministic(seed=3, keyed_samples=True, on_drift="error") as control:
        loader = DataLoader(Items(), batch_size=4, collate_fn=list)
        before = random.getstate(), torch.get_rng_state(), np.random.get_state()[1].tolist()
        list(loader)
        assert random.getstate() == before[0]
        assert torch.equal(torch.get_rng_state(), before[1])
        assert np.random.get_state()[1].tolist() == before[2]
        control.check()


def test_the_script_sees_its_own_dataset():
    seen = []

    class Own(Items):
        def __getitem__(self, index):
            info = get_worker_info()
            return type(info.dataset).__name__

    with deterministic(seed=3, keyed_samples=True):
        loader = DataLoader(Own(), collate_fn=list, num_workers=1)
        seen = [batch[0] for batch in loader]
        assert type(loader.dataset) is Own
    assert set(seen) == {"Own"}


@pytest.mark.parametrize("persistent", [False, True])
def test_elements_have_numbers_with_one_worker(persistent):
    plain = {"dataset": Elements(), "shuffle": None}

    expected = run(**plain)
    assert run(**plain, num_workers=1, persistent_workers=persistent) == expected
    assert expected[0] != expected[1]


def test_elements_have_none_with_several():
    with pytest.warns(UserWarning, match="the numbers of its elements depend on the workers"):
        first = run(dataset=Elements(), shuffle=None, num_workers=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert run(dataset=Elements(), shuffle=None, num_workers=2) == first


def test_our_own_loader_is_left_alone():
    def found():
        return list(samebits.DataLoader(Items(), 4, shuffle=True, collate_fn=list))

    with deterministic(seed=3):
        expected = found()
    with deterministic(seed=3, keyed_samples=True):
        assert found() == expected


@pytest.mark.parametrize("options", [{}, {"seed": 3, "workers": False}])
def test_it_needs_a_seed(options):
    with pytest.raises(SamebitsError) as caught:
        deterministic(**options, keyed_samples=True)
    assert caught.value.slug == "usage"


def test_other_arguments_are_refused():
    with pytest.raises(TypeError, match="keyed_sample"):
        deterministic(seed=3, keyed_sample=True)
