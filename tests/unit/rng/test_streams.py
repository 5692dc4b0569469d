"""Named streams depend on the seed and the name only."""

from __future__ import annotations

import random
import types

import numpy as np
import pytest
import torch
from rng_support import controlled, stand_in

from samebits.errors import SamebitsError
from samebits.rng.active import PROCESS
from samebits.rng.states import isolated, reseeded, seed_all
from samebits.rng.streams import Stream, stream

pytestmark = pytest.mark.filterwarnings("ignore:samebits. the generator of OpenCV")  # another test imports it


@pytest.fixture(autouse=True)
def no_run_seed(monkeypatch):
    monkeypatch.setattr(PROCESS, "seed", None)


def test_streams_are_fixed_for_ever():
    """Runs made with an earlier release must come back."""
    found = stream("augment", 1, 2, seed=3)

    assert (found.seed, found.keys) == (0xCFEFFA7B60E51AEB, ("augment", 1, 2))
    assert found.numpy().integers(2**40) == 864797248083
    assert found.python().getrandbits(40) == 669507385205
    assert torch.randint(2**40, (), generator=found.torch()).item() == 1012304666625


def test_a_stream_begins_anew_each_time():
    found = stream("a", seed=3)

    assert found.numpy().random() == found.numpy().random()
    assert found.python().random() == found.python().random()
    assert torch.rand(1, generator=found.torch()) == torch.rand(1, generator=found.torch("cpu"))


def test_names_do_not_meet():
    names = [("a",), ("b",), ("a", 0), ("a", "0"), (0,), ("a0",), (), ("child", "a")]
    streams = [stream(*name, seed=3) for name in names] + [
        stream("a", seed=3).child(0),
        stream(seed=3).child("a"),
    ]
    draws = {torch.rand(2, generator=found.torch())[1].item() for found in streams}

    assert len({found.seed for found in streams}) == len({s.seed % 2**32 for s in streams}) == len(streams)
    assert len(draws) == len(streams)


def test_the_run_seed_is_that_of_seed_all_or_of_the_activation():
    seed_all(3)
    assert stream("a") == stream("a", seed=3)
    with controlled(4):
        assert stream("a") == stream("a", seed=4)
        with isolated(), reseeded("x"):
            assert stream("a") == stream("a", seed=4)
    assert stream("a") == stream("a", seed=3)


def test_streams_leave_other_generators_alone():
    states = random.getstate(), torch.get_rng_state().tolist(), np.random.get_state()[1].tolist()
    found = stream("a", seed=3)
    found.numpy().random(), found.python().random(), torch.rand(1, generator=found.torch())

    assert (random.getstate(), torch.get_rng_state().tolist(), np.random.get_state()[1].tolist()) == states


def test_numpys_integers_are_keys():
    assert stream(np.int64(5), np.str_("a"), seed=3) == stream(5, "a", seed=3)
    assert [type(key) for key in stream(np.int64(5), np.str_("a"), seed=3).keys] == [int, str]


@pytest.mark.parametrize("key", [1.0, None, True, b"a", (1,)])
def test_other_keys_are_refused(key):
    for call in (lambda: stream(key, seed=3), lambda: stream(seed=3).child(key)):
        with pytest.raises(SamebitsError, match="expected whole numbers and texts") as caught:
            call()
        assert caught.value.slug == "stream-key"


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(SamebitsError, match="the seed is"):
        stream("a", seed=seed)


def test_without_a_seed_there_is_no_stream():
    with pytest.raises(SamebitsError, match="no run seed is in force") as caught:
        stream("a")
    assert caught.value.slug == "no-seed"


def test_jax_gets_a_key_of_32_bits(monkeypatch):
    """With a stand-in: JAX is not installed."""
    stand_in(monkeypatch, "jax").random = stand_in(monkeypatch, "jax.random", key=lambda seed: ("key", seed))
    found = stream("a", seed=3)

    assert found.jax() == ("key", found.seed % 2**32)


def test_streams_are_frozen():
    with pytest.raises(AttributeError):
        stream("a", seed=3).seed = 4
    assert isinstance(stream("a", seed=3), Stream)
    assert not isinstance(Stream.numpy, types.GeneratorType)
