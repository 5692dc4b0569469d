"""Datasets and helpers of the tests of loaders; a module, so that spawned workers can unpickle them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

import samebits


def draws():
    """From each global generator."""
    return (random.getrandbits(60), int(np.random.randint(2**60)), int(torch.randint(2**60, (1,))))


class Items(torch.utils.data.Dataset):
    """Each item is its index and draws, also of a generator of its own and one made at the first item."""

    def __init__(self, size=53):
        self.size = size
        self.rng = np.random.default_rng(0)
        self.late: Any = None

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if self.late is None:
            self.late = random.Random(1)
        return (int(index), *draws(), int(self.rng.integers(2**60)), self.late.getrandbits(60))


class Plain(torch.utils.data.Dataset):
    """Each item is its index."""

    def __init__(self, size=53):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return index


def loader(dataset=None, batch_size=8, **options):
    """A shuffled loader that keeps samples as they are."""
    options = {"shuffle": True, "seed": 3, "collate_fn": list, **options}
    if options.get("sampler") is not None:
        options["shuffle"] = False
    return samebits.DataLoader(Items() if dataset is None else dataset, batch_size, **options)


def epochs(found, count=1):
    """The batches of so many epochs."""
    return [list(found) for _ in range(count)]


def flat(passes):
    """The samples of epochs, in order."""
    return [sample for batches in passes for batch in batches for sample in batch]


def of_ranks(make, count=1):
    """The samples of so many epochs, of all ranks together.

    Args:
        make: gives the loaders of the ranks.
        count: of epochs.
    """
    loaders = make()
    samples = []
    for _ in range(count):
        lists = [list(found) for found in loaders]
        for number in range(max(map(len, lists))):
            samples += [one for batches in lists for batch in batches[number : number + 1] for one in batch]
    return samples


class Lines(torch.utils.data.IterableDataset):
    """Elements in shards of different lengths: the shard, the number, and draws."""

    def __init__(self, shards=8, longest=9):
        self.num_shards, self.longest = shards, longest
        self.rng = np.random.default_rng(0)
        self.late: Any = None

    def iter_shard(self, number):
        """The elements of one shard."""
        for element in range(self.longest - number % 4):
            if self.late is None:
                self.late = random.Random(1)
            yield (number, element, *draws(), int(self.rng.integers(2**60)), self.late.getrandbits(60))

    def __iter__(self):
        for number in range(self.num_shards):
            yield from self.iter_shard(number)


class Stream(torch.utils.data.IterableDataset):
    """Elements without shards."""

    def __init__(self, size=30):
        self.size = size

    def __iter__(self):
        for number in range(self.size):
            yield (number, *draws())
