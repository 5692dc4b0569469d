"""Generators made without a seed get one that follows from the run seed, and live ones are isolated."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import random
import secrets
import tempfile
import threading
import uuid
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import default_rng
from rng_support import controlled
from torch import Generator

from samebits.errors import SamebitsError
from samebits.rng import states as rng
from samebits.rng.active import PROCESS, Active
from samebits.rng.generator_objects import register, unregister
from samebits.rng.unseeded_generators import GeneratorControl
from samebits.switches.switch import Control

pytestmark = pytest.mark.filterwarnings("ignore:samebits. the generator of OpenCV")  # another test imports it

UNSEEDED = {
    "default_rng": lambda: np.random.default_rng().random(),
    "default_rng imported before": lambda: default_rng(None).random(),
    "RandomState": lambda: np.random.RandomState().rand(),
    "RandomState.seed": lambda: [state := np.random.RandomState(1), state.seed(), state.rand()][-1],
    "SeedSequence": lambda: np.random.SeedSequence().entropy,
    "PCG64": lambda: np.random.Generator(np.random.PCG64()).random(),
    "MT19937": lambda: np.random.MT19937().random_raw(),
    "Philox": lambda: np.random.Philox().random_raw(),
    "SFC64": lambda: np.random.SFC64().random_raw(),
    # NumPy keeps the position among the words (`_legacy_seeding`), so that has to be the same, as it is in a
    # run that was seeded.
    "numpy.random.seed": lambda: [np.random.seed(1), np.random.seed(), np.random.rand()][-1],
    "Random": lambda: random.Random().random(),
    "Random(None)": lambda: random.Random(None).random(),
    "Random.seed": lambda: [made := random.Random(1), made.seed(), made.random()][-1],
    "random.seed": lambda: [random.seed(), random.random()][-1],
    "subclass of Random": lambda: type("Mine", (random.Random,), {})().random(),
    "torch.seed": lambda: [torch.seed(), torch.rand(()).item()][-1],
    "torch.random.seed": torch.random.seed,
    "Generator.seed": lambda: torch.Generator().seed(),
    "default_generator.seed": lambda: torch.default_generator.seed(),  # noqa: PLW0108 - bound when called
}


def twice(make: Any, seed: int = 3) -> list[Any]:
    with controlled(seed):
        return [make(), make()]


@pytest.mark.parametrize("name", UNSEEDED)
def test_what_has_no_seed_gets_one(name):
    """The same each run, another one each time and for each run seed; entropy without control."""
    make = UNSEEDED[name]
    first = twice(make)

    assert first == twice(make)
    assert len({*first, *twice(make, seed=4), make(), make()}) == 6


SEEDED = {
    "default_rng": lambda: np.random.default_rng(7).random(),
    "RandomState": lambda: np.random.RandomState(7).rand(),
    "numpy.random.seed": lambda: [np.random.seed(7), np.random.rand()][-1],
    "Random": lambda: random.Random("seven").random(),
    "Random, version 1": lambda: [made := random.Random(), made.seed("seven", version=1), made.random()][-1],
    "random.seed": lambda: [random.seed(7), random.random()][-1],
    "torch.manual_seed": lambda: [torch.manual_seed(7), torch.rand(()).item()][-1],
    "torch.Generator": lambda: torch.Generator().initial_seed(),
}


@pytest.mark.parametrize("name", SEEDED)
def test_the_users_seeds_win(name):
    make = SEEDED[name]

    assert {*twice(make), *twice(make, seed=4)} == {make()}


def test_entropy_that_is_meant_stays_entropy():
    draws = [
        lambda: os.urandom(8),
        lambda: secrets.token_hex(8),
        lambda: random.SystemRandom().random(),
        uuid.uuid4,
        lambda: next(tempfile._RandomNameSequence()),
    ]

    assert all(len({*twice(draw), *twice(draw)}) == 4 for draw in draws)


def test_another_library_does_not_shift_the_scripts_seeds():
    """Seeds are counted by the module that asks, and by library."""
    alone = twice(default_rng)[1].random()
    elsewhere = compile(
        "import numpy, random; numpy.random.default_rng(); random.Random()", "other.py", "exec"
    )

    def make() -> Any:
        exec(elsewhere, {"__name__": "other"})  # noqa: S102
        random.Random()
        return default_rng()

    assert twice(make)[1].random() == alone


def test_spawned_children_are_their_script():
    """The main module has another name there."""
    code = compile("import numpy; value = numpy.random.default_rng().random()", "train.py", "exec")
    found = []
    for name in ("__main__", "__mp_main__"):
        names: dict[str, Any] = {"__name__": name}
        with controlled():
            exec(code, names)  # noqa: S102
        found.append(names["value"])

    assert found[0] == found[1]


def test_threads_count_for_themselves():
    def in_thread() -> list[float]:
        found: list[float] = []
        thread = threading.Thread(target=lambda: found.append(default_rng().random()), name="loader")
        thread.start()
        thread.join()
        return found

    assert twice(lambda: (in_thread(), default_rng().random())) == twice(
        lambda: (default_rng().random(), in_thread())[::-1]
    )


def test_without_a_run_seed_nothing_is_changed():
    assert len({*twice(UNSEEDED["Random"], seed=None), *twice(UNSEEDED["PCG64"], seed=None)}) == 4
    with controlled(None):
        rng.seed_all(3)
        first = default_rng().random()
        rng.seed_all(3)
        assert default_rng().random() == first


def test_an_inner_activation_takes_over_and_gives_back():
    with controlled(3):
        outer = [default_rng().random() for _ in range(3)]
    with controlled(3):
        found = [default_rng().random()]
        with controlled(4):
            inner = default_rng().random()
        with controlled(None):
            found.append(default_rng().random())
        found.append(default_rng().random())

    assert (found, inner) == (outer, twice(default_rng, seed=4)[0].random())


def test_what_is_made_inside_isolated_does_not_count():
    with controlled():
        first = default_rng().random()
        with rng.isolated():
            inside = default_rng().random()
        second = default_rng().random()
    with controlled():
        assert [default_rng().random(), default_rng().random()] == [first, second]
    assert inside == second


def test_what_is_made_inside_reseeded_is_the_same_each_time():
    found = []
    with controlled():
        for name in ("a", "a", "b"):
            with rng.reseeded(name):
                found.append((default_rng().random(), default_rng().random()))
            default_rng()

    assert found[0] == found[1] != found[2]


class Held:
    """One generator of each type, and what it draws next."""

    def __init__(self) -> None:
        self.numpy = np.random.default_rng(1)
        self.state = np.random.RandomState(1)
        self.bits = np.random.SFC64(1)
        self.python = random.Random(1)
        self.torch = Generator().manual_seed(1)

    def draw(self) -> list[Any]:
        """The next of each."""
        return [
            self.numpy.random(dtype="float32"),
            self.state.randn(),
            self.bits.random_raw(),
            self.python.gauss(0, 1),
            torch.rand((), generator=self.torch).item(),
        ]

    def all(self) -> list[Any]:
        """The generators."""
        return list(vars(self).values())


def isolated_draws(held: Held) -> tuple[list[Any], list[Any]]:
    held.draw()
    with rng.isolated():
        inside = held.draw()
    return inside, held.draw()


def test_live_generators_are_isolated():
    with controlled():
        inside, after = isolated_draws(Held())

    assert inside == after


def test_without_control_torchs_have_to_be_registered():
    inside, after = isolated_draws(Held())
    assert (inside[:4], inside[4] == after[4]) == (after[:4], False)

    held = Held()
    register(held.torch, "mine")
    inside, after = isolated_draws(held)
    assert inside == after
    assert PROCESS.registered["mine"]() is held.torch
    unregister("mine")


def test_registered_generators_are_saved_by_name():
    held = Held()
    names = [register(generator) for generator in held.all()]
    try:
        states = rng.save_states()
        expected = held.draw()
        rng.restore_states(states)

        assert held.draw() == expected
        assert names == ["numpy-0", "numpy-1", "numpy-2", "python-0", "torch-0"]
        assert {state.source for state in states} >= {f"generator:{name}" for name in names}
    finally:
        for name in names:
            unregister(name)


def test_a_registered_state_goes_into_another_object():
    """As in a process that resumes."""
    first, second = Held(), Held()
    first.draw()
    for generator, other in zip(first.all(), second.all(), strict=True):
        register(generator, "mine")
        (state,) = [state for state in rng.save_states() if state.source == "generator:mine"]
        unregister("mine")
        register(other, "mine")
        with pytest.warns(UserWarning, match="there are no states of python"):
            rng.restore_states([state])
        with pytest.raises(SamebitsError, match="the state of generator:mine, saved with"):
            rng.restore_states([rng.SourceState("generator:mine", "torch 1", b'{"state": {}}')])
        unregister("mine")

    assert first.draw() == second.draw()


def test_a_registered_generator_that_is_gone_is_missed():
    generator = torch.Generator()
    register(generator, "gone")
    states = rng.save_states()
    del generator
    gc.collect()
    with pytest.raises(SamebitsError, match="states of generator:gone, but no such sources here"):
        rng.restore_states(states)
    register(random.Random(), "gone")
    unregister("gone")


def test_names_and_types_are_checked():
    first, second = torch.Generator(), torch.Generator()
    register(first, "mine")
    register(first, "mine")
    with pytest.raises(SamebitsError, match="another generator is registered as 'mine'") as caught:
        register(second, "mine")
    unregister("mine")
    unregister("mine")

    assert caught.value.slug == "generator-name"
    for other in (random.SystemRandom(), 3, np.random, torch.Generator):
        with pytest.raises(SamebitsError, match="cannot register") as caught:
            register(other)
        assert caught.value.slug == "generator-type"


def test_a_generator_that_cannot_be_read_is_told():
    class Closed(random.Random):
        def getstate(self) -> Any:
            raise NotImplementedError

    closed = Closed(1)
    with pytest.warns(UserWarning, match="an object of type .*Closed is not isolated"), rng.isolated():
        pass
    del closed
    gc.collect()


def test_what_has_no_state_is_passed_over(recwarn):
    """`SystemRandom` draws entropy; `secrets` holds one."""
    held = random.SystemRandom()
    with rng.isolated():
        held.random()

    assert [str(found.message) for found in recwarn if "OpenCV" not in str(found.message)] == []


def test_torchs_generators_are_what_they_were():
    """Types, pickles and copies are those without control; only weak references are kept."""
    with controlled():
        made = torch.Generator()
        loaded = pickle.loads(pickle.dumps(made))

        assert type(made) is torch.Generator is Generator
        assert isinstance(made, torch.Generator)
        assert {type(loaded), type(copy.deepcopy(made))} == {torch.Generator}
        assert {made, loaded} <= set(PROCESS.torch_generators)
        gone = weakref.ref(made)
        del made
        assert gone() is None
        assert torch.Generator("cpu").device == torch.device("cpu")
        with pytest.raises((TypeError, RuntimeError)):
            torch.Generator("nowhere")
    pickle.dumps(loaded)


def test_everything_is_put_back():
    def names() -> list[Any]:
        return [
            random.Random.seed,
            random.seed,
            np.random.bit_generator.randbits,
            vars(torch.Generator)["seed"],
        ]

    before = names()
    with controlled():
        assert not any(new is old for new, old in zip(names(), before, strict=True))
    assert all(new is old for new, old in zip(names(), before, strict=True))
    assert "__call__" not in vars(type(torch.Generator))
    control = GeneratorControl(Active(Control(), 3))
    control.remove()  # also when it was never installed


def test_compiled_code_and_loaders_work_under_control():
    data = torch.utils.data.TensorDataset(torch.arange(8))

    def order() -> list[int]:
        loader = torch.utils.data.DataLoader(data, batch_size=2, shuffle=True)
        return [int(value) for (batch,) in loader for value in batch]

    def seeded() -> list[int]:
        rng.seed_all(3)
        return order()

    assert twice(seeded) == twice(seeded)
