"""Looking for generators runs no code of the objects that are looked through, and knows its limits."""

from __future__ import annotations

import weakref
from collections import defaultdict

import numpy as np
import pytest

from samebits.errors import SamebitsWarning
from samebits.rng import _object_walk
from samebits.rng._held_generators import HeldGenerators
from samebits.rng._object_walk import walk


class Holder:
    """An object with attributes."""


class ClassEvaluates:
    """As lazy objects of web frameworks."""

    @property
    def __class__(self):
        raise RuntimeError("evaluated")


class SpaceFails:
    """Its attributes cannot be had."""

    @property
    def __dict__(self):
        raise RuntimeError("no attributes")


class SlotsAndGetattr:
    """Its `__getattr__` fails for what is not set."""

    __slots__ = ("__private", "rng", "unset")

    def __init__(self):
        self.rng, self.__private = np.random.default_rng(0), np.random.default_rng(1)

    def __getattr__(self, name):
        raise RuntimeError(name)


class ReadsDisk(dict):
    """Loads what it holds when it is asked."""

    def __getitem__(self, key):
        raise OSError("reads a file")

    __iter__ = keys = items = __len__ = __getitem__


class ListReadsDisk(list):
    """The same for a list."""

    def __getitem__(self, key):
        raise OSError("reads a file")

    __iter__ = __len__ = __getitem__


def paths(value):
    return [held.path for held in walk({"dataset": value}).generators]


def dead_proxy():
    return weakref.proxy(Holder())


@pytest.mark.parametrize("make", [dead_proxy, ClassEvaluates, SpaceFails], ids=lambda make: make.__name__)
def test_objects_that_fail_when_they_are_asked_are_passed_by(make):
    holder = Holder()
    holder.odd, holder.rng = make(), np.random.default_rng(0)

    assert paths(holder) == ["dataset.rng"]
    assert not walk({"dataset": holder}).is_stale()


def test_slots_are_read_past_the_class_s_own_code_and_private_ones_too():
    assert paths(SlotsAndGetattr()) == ["dataset.__private", "dataset.rng"]


def test_elements_of_lazy_containers_are_not_loaded_and_what_is_in_them_is_found():
    held = ReadsDisk()
    dict.__setitem__(held, "rng", np.random.default_rng(0))
    lazy = ListReadsDisk([held])

    assert paths(lazy) == ["dataset[0]['rng']"]
    assert not walk({"dataset": lazy}).is_stale()


def test_attributes_of_a_list_of_the_user_s_own_class_are_found():
    lazy = ListReadsDisk()
    lazy.rng = np.random.default_rng(0)

    assert paths(lazy) == ["dataset.rng"]


def test_a_cache_that_drops_entries_gets_none_back():
    cache = defaultdict(list, {index: [index] for index in range(4)})
    result = walk({"dataset": cache})

    del cache[2]

    assert result.is_stale()
    assert sorted(cache) == [0, 1, 3]


def test_a_dict_of_the_user_s_own_class_that_grew_is_looked_at_again():
    held = ReadsDisk()
    result = walk({"dataset": held})

    dict.__setitem__(held, "rng", np.random.default_rng(0))

    assert result.is_stale()


def test_many_places_are_not_looked_at_again_after_each_batch():
    holder = Holder()
    holder.__dict__.update({f"name{number}": number for number in range(5000)})
    result = walk({"dataset": holder})

    assert result.large
    assert not result.edges


def test_what_is_beyond_the_limit_is_told(monkeypatch):
    monkeypatch.setattr(_object_walk, "MOST", 20)

    with pytest.warns(SamebitsWarning, match="only the first 20"):
        held = HeldGenerators({"dataset": [[Holder()] for _ in range(30)]})
    held.search(again=True)
