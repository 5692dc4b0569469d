"""Every generator that a sample may draw from is set to its key, and put back afterwards."""

from __future__ import annotations

import functools
import hashlib
import random
import sys
import types

import numpy as np
import pytest
import torch

from samebits.determinism.context import deterministic
from samebits.errors import SamebitsError
from samebits.rng._held_generators import HeldGenerators
from samebits.rng.samples import EpochKeys, SampleRng
from samebits.rng.seeds import derive

MODULE_RNG = np.random.default_rng(0)


def draw_all():
    return (
        random.random(),
        random.gauss(0, 1),
        float(np.random.rand()),
        float(np.random.randn()),
        float(torch.rand(1)),
        float(torch.randn(1)),
    )


def test_it_is_what_the_documentation_defines():
    secret = derive(3, "samples", 7).to_bytes(8, "little")
    message = b"s" + (41).to_bytes(8, "little")

    expected = hashlib.blake2b(message, key=secret, digest_size=48).digest()
    assert EpochKeys(3, 7).sample(41) == expected
    message += (5).to_bytes(8, "little")
    assert EpochKeys(3, 7).sample(41, 5) == hashlib.blake2b(message, key=secret, digest_size=48).digest()


def test_all_are_different():
    keys = [
        EpochKeys(seed, epoch).sample(index)
        for seed in range(3)
        for epoch in range(20)
        for index in range(20)
    ]
    keys += [EpochKeys(0, 0).sample(0, position) for position in range(5)]
    keys += [EpochKeys(0, 0).batch(0), EpochKeys(0, 0).element(0), EpochKeys(0, 0).element(0, 0)]

    assert len(set(keys)) == len(keys)


def test_they_get_what_the_documentation_says():
    key = EpochKeys(3, 0).sample(5)
    SampleRng({}).key(key)
    drawn = draw_all()

    random.seed(int.from_bytes(key[:16], "little"))
    np.random.seed(int.from_bytes(key[16:20], "little"))
    torch.manual_seed(int.from_bytes(key[20:24], "little"))
    assert drawn == draw_all()


def test_nothing_is_left_of_earlier_draws():
    """Not even the second value of a pair of normal numbers."""
    rng, key = SampleRng({}), EpochKeys(3, 0).sample(5)
    rng.key(key)
    expected = draw_all()

    for prelude in (random.gauss, np.random.normal, torch.normal):
        prelude(0.0, 1.0) if prelude is not torch.normal else torch.randn(1)
        rng.key(key)
        assert draw_all() == expected


def test_other_samples_draw_other_numbers():
    rng = SampleRng({})
    seen = []
    for index in range(200):
        rng.key(EpochKeys(3, 0).sample(index))
        seen.append(draw_all())

    assert all(len(set(column)) == 200 for column in zip(*seen, strict=True))


@pytest.mark.parametrize("waiting", [False, True])
def test_they_are_put_back(waiting):
    def prepare():
        random.seed(1)
        np.random.seed(1)
        torch.manual_seed(1)
        if waiting:
            random.gauss(0, 1)
            np.random.randn()

    prepare()
    expected = [np.random.randn(), *draw_all()]
    prepare()
    rng = SampleRng({})
    with rng.preserved():
        rng.key(EpochKeys(3, 0).sample(5))
        draw_all()
        np.random.randn()

    assert [np.random.randn(), *draw_all()] == expected


def test_they_are_put_back_after_an_exception():
    random.seed(1)
    expected = random.Random(1).random()
    rng = SampleRng({})

    def load():
        with rng.preserved():
            rng.key(EpochKeys(3, 0).sample(5))
            raise KeyError

    with pytest.raises(KeyError):
        load()

    assert random.random() == expected


def test_numpys_other_bit_generators_are_keyed_and_put_back():
    before = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(5))
    try:
        expected = np.random.RandomState(np.random.PCG64(5)).rand()
        rng, key = SampleRng({}), EpochKeys(3, 0).sample(5)
        with rng.preserved():
            rng.begin_batch()
            rng.key(key)
            first = np.random.rand()
            np.random.rand()
            rng.key(key)
            assert np.random.rand() == first
        assert np.random.rand() == expected
    finally:
        np.random.set_bit_generator(before)


def test_no_drift_is_seen_under_control(recwarn):
    with deterministic(seed=3, on_drift="error") as control:
        rng = SampleRng({})
        for _ in range(3):
            with rng.preserved():
                rng.key(EpochKeys(3, 0).sample(5))
                draw_all()
            control.check()
            draw_all()
            control.check()
    assert not [warning for warning in recwarn if "generator" in str(warning.message)]


def test_what_is_made_without_a_seed_follows_from_the_sample():
    def drawn(index):
        rng.key(EpochKeys(3, 0).sample(index), 0, index)
        return float(np.random.default_rng().random()), random.Random().random()

    with deterministic(seed=3):
        rng = SampleRng({})
        with rng.preserved():
            first = [drawn(index) for index in (1, 2)]
        outside = np.random.default_rng().random()
        with rng.preserved():
            again = [drawn(index) for index in (2, 1)]
    with deterministic(seed=3):
        without = np.random.default_rng().random()

    assert first == again[::-1]
    assert first[0] != first[1]
    assert outside == without


class Holder:
    """A dataset with generators in all kinds of places."""

    class_rng = np.random.default_rng(1)

    def __init__(self):
        closed = np.random.default_rng(2)
        self.rng = np.random.default_rng(3)
        self.bits = np.random.Philox(4)
        self.legacy = np.random.RandomState(5)
        self.python = random.Random(6)
        self.torch = torch.Generator().manual_seed(7)
        self.nested = {"a": [types.SimpleNamespace(rng=np.random.Generator(np.random.MT19937(8)))]}
        self.closure = lambda: closed.random()  # noqa: PLW0108
        self.partial = functools.partial(lambda rng: rng.random(), np.random.default_rng(9))
        self.bound = np.random.default_rng(10).random
        self.shared = self.rng

    def draws(self):
        """One from each."""
        return [
            self.class_rng.random(),
            MODULE_RNG.random(),
            self.rng.random(),
            np.random.Generator(self.bits).random(),
            self.legacy.rand(),
            self.python.random(),
            float(torch.rand(1, generator=self.torch)),
            self.nested["a"][0].rng.random(),
            self.closure(),
            self.partial(),
            self.bound(),
        ]


def test_all_places_are_keyed_alike_each_time_and_differ_from_each_other():
    holder = Holder()
    rng = SampleRng({"dataset": holder})
    rng.key(EpochKeys(3, 0).sample(1))
    first = holder.draws()
    rng.key(EpochKeys(3, 0).sample(2))
    second = holder.draws()
    rng.key(EpochKeys(3, 0).sample(1))

    assert holder.draws() == first
    assert len(set(first + second)) == 2 * len(first)


def test_held_ones_are_put_back():
    holder = Holder()
    rng = SampleRng({"dataset": holder})
    expected = Holder().draws()[2:]
    with rng.preserved():
        rng.key(EpochKeys(3, 0).sample(1))
        holder.draws()

    assert holder.draws()[2:] == expected


def test_a_generator_that_is_replaced_is_keyed():
    holder = types.SimpleNamespace(rng=np.random.default_rng(1))
    rng = SampleRng({"dataset": holder})
    rng.key(EpochKeys(3, 0).sample(1))
    first = holder.rng.random()
    holder.rng = np.random.default_rng(2)
    rng.key(EpochKeys(3, 0).sample(1))

    assert holder.rng.random() == first


def test_one_that_appears_is_noticed():
    holder = types.SimpleNamespace(rng=None, count=0)
    held = HeldGenerators({"dataset": holder})
    holder.count = 1
    assert not held.search()
    holder.rng = np.random.default_rng(1)
    assert held.search()
    assert not held.search()


def test_the_global_generator_under_another_name_has_the_global_key():
    holder = types.SimpleNamespace(rng=np.random.mtrand._rand, torch=torch.default_generator)
    rng, key = SampleRng({"dataset": holder}), EpochKeys(3, 0).sample(1)
    rng.key(key)
    drawn = np.random.rand()

    assert drawn == np.random.RandomState(int.from_bytes(key[16:20], "little")).rand()


def test_datasets_of_torch_are_looked_through():
    class Items(torch.utils.data.Dataset):
        def __init__(self):
            self.rng = np.random.default_rng(1)

        def __len__(self):
            return 3

    data = torch.utils.data
    wrapped = data.Subset(data.ConcatDataset([Items(), Items()]), [1, 2])

    paths = [slot.held.path for slot in HeldGenerators({"dataset": wrapped}).slots]
    assert paths == ["dataset.dataset.datasets[0].rng", "dataset.dataset.datasets[1].rng"]


def test_a_long_list_costs_nothing():
    holder = types.SimpleNamespace(files=[("a", 1)] * 1_000_000, array=np.zeros(10**6), n=torch.zeros(9))

    assert HeldGenerators({"dataset": holder})._walk.visited < 300


def test_entropy_is_left_alone():
    assert not HeldGenerators({"dataset": types.SimpleNamespace(r=random.SystemRandom())}).slots


def test_globals_of_installed_packages_are_left_alone():
    assert not HeldGenerators({"dataset": torch.nn.functional.dropout}).slots


def test_one_that_cannot_be_set_is_refused():
    class Broken(random.Random):
        def seed(self, *_):
            raise ValueError("no")

    broken = Broken.__new__(Broken)
    rng = SampleRng({"dataset": types.SimpleNamespace(rng=broken)})
    with pytest.raises(SamebitsError, match="Broken") as caught:
        rng.key(EpochKeys(3, 0).sample(1))
    assert caught.value.slug == "sample-generator"


def test_a_module_of_the_user_is_looked_into(tmp_path, monkeypatch):
    (tmp_path / "my_augment.py").write_text(
        "import numpy as np\nRNG = np.random.default_rng(0)\nOTHER = np.random.default_rng(1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = __import__("my_augment")
    space = {"my_augment": module}
    exec(compile("def draw():\n    return my_augment.RNG.random()", "/code/t.py", "exec"), space)  # noqa: S102
    try:
        paths = [slot.held.path for slot in HeldGenerators({"dataset": space["draw"]}).slots]
    finally:
        sys.modules.pop("my_augment")
    assert paths == ["dataset my_augment.RNG"]
