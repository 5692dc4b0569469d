"""The seeds that a script sets itself are seen, and follow the run seed when asked to."""

from __future__ import annotations

import random
import threading
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from samebits.rng.active import PROCESS, Active
from samebits.rng.script_seeds import ScriptSeeds
from samebits.rng.states import seed_sources
from samebits.switches.switch import Control

# Lambdas, because the functions are to be looked up when they are called.
SEEDERS = {
    "random.seed": (lambda seed: random.seed(seed), random.random),  # noqa: PLW0108
    "numpy.random.seed": (lambda seed: np.random.seed(seed), np.random.rand),  # noqa: PLW0108
    "torch.manual_seed": (lambda seed: torch.manual_seed(seed), lambda: torch.rand(1).item()),  # noqa: PLW0108
    "torch.random.manual_seed": (lambda seed: torch.random.manual_seed(seed), lambda: torch.rand(1).item()),  # noqa: PLW0108
    "by name": (lambda seed: torch.manual_seed(seed=seed), lambda: torch.rand(1).item()),
}


@contextmanager
def watched(seed: int, *, reseed: bool):
    active = Active(Control(seed=seed, reseed=reseed), seed)
    seeds = ScriptSeeds(active)
    PROCESS.push(active)
    seeds.install()
    try:
        yield seeds
    finally:
        seeds.remove()
        PROCESS.drop(active)


@pytest.mark.parametrize("name", SEEDERS)
def test_the_scripts_seed_wins_and_is_seen(name):
    seed, draw = SEEDERS[name]
    seed(42)
    expected = draw()
    with watched(3, reseed=False) as seeds:
        seed(42)
        assert draw() == expected
    (call,) = seeds.seen

    assert (call.given, call.site.file) == ("42", __file__)


@pytest.mark.parametrize("name", SEEDERS)
def test_when_asked_it_follows_from_the_run_seed(name):
    seed, draw = SEEDERS[name]
    drawn = {}
    for run_seed in (3, 4):
        for own in (42, 43):
            with watched(run_seed, reseed=True):
                seed(own)
                first = draw()
                seed(own)
                assert draw() == first  # equal seeds stay equal
            drawn[run_seed, own] = first

    assert len(set(drawn.values())) == 4


def test_what_samebits_seeds_is_not_the_scripts():
    with watched(3, reseed=True) as seeds:
        seed_sources(7)
        ours = torch.rand(1)
    torch.manual_seed(7)

    assert (seeds.seen, torch.equal(ours, torch.rand(1))) == ([], True)


def test_a_seed_whose_generator_is_put_back_is_not_in_force():
    """As datasets of torchvision draw their samples, and `torch.random.fork_rng`."""

    def put_back() -> None:
        state, own, numpys = torch.get_rng_state(), random.getstate(), np.random.get_state()
        for seed, _ in SEEDERS.values():
            seed(5)
        torch.set_rng_state(state)
        random.setstate(own)
        np.random.set_state(numpys)
        with torch.random.fork_rng():
            torch.manual_seed(6)

    with watched(3, reseed=False) as seeds:
        put_back()
        assert seeds.seen == []
        random.seed(1)
        torch.manual_seed(2)
        put_back()
        torch.manual_seed(3)

    assert [(call.function, call.given) for call in seeds.seen] == [
        ("random.seed", "1"),
        ("torch.manual_seed", "2"),
        ("torch.manual_seed", "3"),
    ]


def test_a_state_that_is_set_does_not_end_a_seed_from_before():
    state = torch.get_rng_state()
    with watched(3, reseed=False) as seeds:
        torch.manual_seed(4)
        torch.rand(1)
        here = torch.get_rng_state()
        torch.set_rng_state(here)
        assert len(seeds.seen) == 1
        torch.set_rng_state(state)
        assert seeds.seen == []


def test_a_library_that_seeds_is_told_from_a_script_that_seeds_through_one(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    text = "import random\ndef inner(): random.seed(1)\ndef outer(): inner()\n"
    (folder / "seeding_library.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    import seeding_library

    with watched(3, reseed=False) as seeds:
        seeding_library.inner()
        seeding_library.outer()
    through, by_itself = seeds.seen

    assert (through.by, by_itself.by.line) == (None, 2)
    assert {call.site.file for call in seeds.seen} == {__file__}


def test_what_python_seeds_for_itself_is_nobodys():
    """No line of the script or of a library is on the stack of that thread."""
    with watched(3, reseed=False) as seeds:
        thread = threading.Thread(target=random.seed, args=(7,))
        thread.start()
        thread.join()

    assert seeds.seen == []


def test_a_call_is_listed_once_and_the_list_ends():
    with watched(3, reseed=False) as seeds:
        for _ in range(3):
            torch.manual_seed(1)
        for number in range(200):
            torch.manual_seed(number)

    assert len(seeds.seen) == 100
