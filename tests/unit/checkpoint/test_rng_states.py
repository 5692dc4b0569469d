"""RNG sources go on where they were; other libraries, seeds and switches are told of."""

import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from samebits.checkpoint import load, save
from samebits.errors import SamebitsError, SamebitsWarning
from samebits.rng.active import PROCESS
from samebits.rng.generator_objects import register, unregister
from samebits.rng.states import restore_states, save_states, seed_all


@pytest.fixture(autouse=True)
def seed_of_the_process():
    """The run seed of this process is put back."""
    before = PROCESS.seed
    yield
    PROCESS.seed = before


def draw():
    return random.random(), random.gauss(0, 1), np.random.rand(), torch.rand(1).item()


def test_all_sources_go_on(tmp_path):
    draw()
    generator = np.random.default_rng(3)
    register(generator, "mine")
    try:
        save(tmp_path / "c")
        expected = draw(), generator.random()
        load(tmp_path / "c")
        assert (draw(), generator.random()) == expected
    finally:
        unregister("mine")
    with pytest.raises(
        SamebitsError, match=r"there are states of generator:mine, but no such sources here"
    ) as raised:
        load(tmp_path / "c")
    assert raised.value.slug == "rng-state"
    with pytest.warns(UserWarning, match=r"generator:mine"):
        load(tmp_path / "c", strict=False)


def test_saving_draws_nothing(tmp_path):
    before = save_states()
    save(tmp_path / "c", value=torch.ones(3))
    assert save_states() == before


def test_rng_can_be_left_alone(tmp_path):
    save(tmp_path / "c")
    draw()
    before = save_states()
    loaded = load(tmp_path / "c", rng=False)
    assert save_states() == before
    assert len(repr(loaded)) < 1000
    loaded.restore_rng()
    assert save_states() == loaded.rng


def test_states_of_another_size_are_named(tmp_path, monkeypatch):
    """As of another release of torch, or another number of GPUs."""
    model = nn.Linear(2, 2)
    with monkeypatch.context() as patch:
        patch.setattr("samebits.rng.sources.torch_devices.TorchCpu.get_state", lambda _: bytes(100))
        patch.setattr("samebits.rng.sources.torch_devices.TorchCpu.version", lambda _: "torch 1.0")
        save(tmp_path / "c", model=model)
    with pytest.raises(
        SamebitsError, match=r"the state of torch, saved with torch 1.0, does not fit torch 2"
    ) as raised:
        load(tmp_path / "c", model=model)
    assert raised.value.slug == "rng-state"
    load(tmp_path / "c", model=model, rng=False)


def test_the_run_seed_comes_along(tmp_path):
    PROCESS.seed = None
    save(tmp_path / "without")
    seed_all(7)
    save(tmp_path / "c")
    PROCESS.seed = None
    load(tmp_path / "without")
    assert PROCESS.run_seed is None
    load(tmp_path / "c", rng=False)
    assert PROCESS.run_seed is None
    load(tmp_path / "c")
    assert PROCESS.run_seed == 7
    seed_all(8)
    with pytest.warns(SamebitsWarning, match=r"the run seed was 7 and is 8 here"):
        load(tmp_path / "c")
    assert PROCESS.run_seed == 8


def test_versions_and_switches_that_differ_are_told(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(torch, "__version__", "1.0.0")
        before = torch.backends.cudnn.benchmark
        torch.backends.cudnn.benchmark = not before
        try:
            save(tmp_path / "c")
        finally:
            torch.backends.cudnn.benchmark = before
    with pytest.warns(
        SamebitsWarning, match=r"torch was 1.0.0 and is 2\..* here; cudnn-benchmark was on and is off"
    ):
        load(tmp_path / "c")


def test_states_are_values_too(tmp_path):
    states = save_states()
    save(tmp_path / "c", at_epoch_start=states)
    assert load(tmp_path / "c").extra["at_epoch_start"] == states


def test_a_generator_of_another_library_is_refused_before_anything_changes(tmp_path):
    saved = [random.Random(1), np.random.default_rng(1)]
    save(tmp_path / "c", generators=saved)
    first, second = random.Random(2), torch.Generator().manual_seed(2)
    before = first.getstate()
    with pytest.raises(SamebitsError, match=r"generators\.1 is the state of a generator of numpy") as error:
        load(tmp_path / "c", generators=[first, second])
    assert error.value.slug == "checkpoint-mismatch"
    assert first.getstate() == before


class Noisy(torch.utils.data.Dataset):
    """Augments with all three generators."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.tensor(
            [index, random.random(), np.random.rand(), torch.rand(1).item()], dtype=torch.float64
        )


def batches(iterator, dropout, count=None):
    """What training sees: batches and dropout."""
    seen = []
    while count is None or len(seen) < count:
        batch = next(iterator, None)
        if batch is None:
            break
        seen.append((batch.tolist(), dropout(torch.ones(8)).tolist()))
    return seen


@pytest.mark.parametrize("workers", [0, 2])
def test_plain_loaders_at_the_end_of_an_epoch(tmp_path, workers):
    """Nothing draws between the end of one epoch and the iterator of the next one: `load` is enough."""
    loader = torch.utils.data.DataLoader(Noisy(), 3, shuffle=True, num_workers=workers)
    dropout = nn.Dropout(0.5)
    batches(iter(loader), dropout)
    save(tmp_path / "c", epoch=0)
    expected = batches(iter(loader), dropout)
    draw()
    load(tmp_path / "c")
    assert batches(iter(loader), dropout) == expected


@pytest.mark.parametrize("workers", [0, 2])
def test_plain_loaders_inside_an_epoch(tmp_path, workers):
    """The states at the epoch's beginning, the iterator, the skip, then the states of the checkpoint."""
    loader = torch.utils.data.DataLoader(Noisy(), 3, shuffle=True, num_workers=workers)
    dropout = nn.Dropout(0.5)
    at_epoch_start = save_states()
    iterator = iter(loader)
    batches(iterator, dropout, 2)
    save(tmp_path / "c", batches=2, at_epoch_start=at_epoch_start)
    expected = batches(iterator, dropout)
    draw()

    loaded = load(tmp_path / "c")
    restore_states(loaded.extra["at_epoch_start"])
    iterator = iter(loader)
    for _ in range(loaded.extra["batches"]):
        next(iterator)
    loaded.restore_rng()
    assert batches(iterator, dropout) == expected
    assert len(expected) == 2


def test_the_order_of_restoring_matters(tmp_path):
    """Why the recipe is as it is: an iterator that is made after restoring draws."""
    loader = torch.utils.data.DataLoader(Noisy(), 3, shuffle=True)
    dropout = nn.Dropout(0.5)
    iterator = iter(loader)
    batches(iterator, dropout, 2)
    save(tmp_path / "c")
    expected = batches(iterator, dropout)
    load(tmp_path / "c")
    iterator = iter(loader)
    for _ in range(2):
        next(iterator)
    assert batches(iterator, dropout) != expected


def test_a_script_that_is_controlled_only_now_is_not_told_of_its_math_library(tmp_path):
    path = str(tmp_path / "c")
    save_it = f"from samebits.checkpoint import save; save({path!r})"
    subprocess.run([sys.executable, "-c", save_it], check=True)
    load_it = (
        "import warnings, torch, samebits; warnings.simplefilter('ignore'); samebits.deterministic(); "
        f"from samebits.checkpoint import load; warnings.simplefilter('always'); load({path!r})"
    )
    done = subprocess.run([sys.executable, "-c", load_it], check=True, capture_output=True, text=True)
    assert "deterministic-algorithms was off and is on here" in done.stderr
    assert "vector-math" not in done.stderr
