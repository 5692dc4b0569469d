"""Seeding, isolating and reseeding all sources together: order, nesting, exceptions, ranks, bad input."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from rng_support import CountingSource, controlled

from samebits.errors import SamebitsError
from samebits.rng import states as rng
from samebits.rng.active import PROCESS
from samebits.rng.seeds import derive

pytestmark = pytest.mark.filterwarnings("ignore:samebits. the generator of OpenCV")  # another test imports it


@pytest.fixture(autouse=True)
def no_run_seed(monkeypatch):
    """`seed_all` leaves its seed in the process."""
    monkeypatch.setattr(PROCESS, "seed", None)


def draw_all() -> list[float]:
    return [random.random(), np.random.rand(), np.random.randn(), torch.rand(()).item()]


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "3", None, True])
def test_what_is_no_seed_changes_nothing(seed):
    before = rng.save_states()
    with pytest.raises(SamebitsError, match="expected a whole number from 0 to") as caught:
        rng.seed_all(seed)

    assert (caught.value.slug, rng.save_states()) == ("seed", before)


def test_ranks_have_seeds_of_their_own_and_rank_0_keeps_the_seed():
    seeds = [rng.seed_all(3, rank=rank) for rank in range(100)]

    assert seeds[0] == 3
    assert seeds[1] == derive(3, "rank", 1)
    assert len({seed % 2**32 for seed in seeds}) == 100
    assert PROCESS.run_seed == seeds[-1]


@pytest.mark.parametrize("rank", [-1, 1.0, "1", True])
def test_what_is_no_rank_is_refused(rank):
    with pytest.raises(SamebitsError, match="the rank is") as caught:
        rng.seed_all(3, rank=rank)

    assert caught.value.slug == "rank"


def test_the_rank_is_of_the_process_group_or_the_variable(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    assert rng.current_rank() == 0
    monkeypatch.setenv("RANK", "3")
    assert rng.current_rank() == 3
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 5)
    assert rng.current_rank() == 5


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "²"])
def test_a_variable_that_is_no_rank_is_refused(text, monkeypatch):
    monkeypatch.setenv("RANK", text)
    with pytest.raises(SamebitsError, match="the environment variable RANK is") as caught:
        rng.current_rank()

    assert caught.value.slug == "rank"


def test_isolation_nests_and_survives_exceptions():
    rng.seed_all(3)
    expected = [draw_all() for _ in range(2)]
    rng.seed_all(3)
    with rng.isolated():
        draw_all()
        with contextlib.suppress(KeyError), rng.isolated():
            inner = draw_all()
            raise KeyError
        assert draw_all() == expected[1]
    assert draw_all() == expected[0]
    assert inner == expected[1]


def test_isolated_and_reseeded_decorate():
    @rng.isolated()
    def evaluate() -> Any:
        return draw_all()

    @rng.reseeded("svd", seed=5)
    def svd() -> Any:
        return draw_all()

    assert evaluate() == evaluate() != svd() == svd()


@pytest.mark.parametrize("op", ["svd_lowrank", "pca_lowrank", "dropout", "multinomial"])
def test_ops_that_draw_give_the_same_each_time_when_reseeded(op):
    matrix = torch.rand(8, 6)
    call = {
        "svd_lowrank": lambda: torch.svd_lowrank(matrix, q=3)[0],
        "pca_lowrank": lambda: torch.pca_lowrank(matrix, q=3)[0],
        "dropout": lambda: torch.nn.functional.dropout(matrix),
        "multinomial": lambda: torch.multinomial(matrix, 3),
    }[op]
    plain = [call() for _ in range(4)]
    found = []
    for _ in range(4):
        with rng.reseeded(op, 1, seed=3):
            found.append(call())

    assert all(torch.equal(found[0], other) for other in found)
    assert not all(torch.equal(plain[0], other) for other in plain)


def test_reseeded_follows_from_the_run_seed():
    def inside(seed: int) -> list[float]:
        rng.seed_all(seed)
        with rng.reseeded("a"):
            return draw_all()

    assert inside(3) == inside(3) != inside(4)


def test_reseeded_within_reseeded_is_the_same_as_alone():
    rng.seed_all(3)
    with rng.reseeded("a"):
        alone = draw_all()
    with rng.reseeded("b"), rng.reseeded("a"):
        assert draw_all() == alone


def test_reseeded_needs_a_seed_and_a_name_that_is_one():
    with pytest.raises(SamebitsError, match="no run seed is in force"), rng.reseeded("a"):
        pass
    with pytest.raises(SamebitsError, match=r"the key 1\.5 is of type float"), rng.reseeded(1.5, seed=3):
        pass


def test_a_seed_set_inside_ends_there():
    rng.seed_all(3)
    with rng.isolated():
        rng.seed_all(4)
    assert PROCESS.run_seed == 3

    with controlled(5):
        with rng.isolated():
            rng.seed_all(4)
        assert PROCESS.run_seed == 5
        rng.seed_all(6)
        assert PROCESS.run_seed == 6  # the user's own call decides
    assert PROCESS.run_seed == 3


def test_a_failed_restore_is_an_error_and_the_others_are_restored(monkeypatch):
    class Broken(CountingSource):
        def set_state(self, state: bytes) -> None:
            raise OSError("first line\nsecond line")

    broken, sound = Broken("broken"), CountingSource("sound")
    monkeypatch.setattr(rng, "sources", lambda: (broken, sound))
    with (
        pytest.raises(SamebitsError, match=r"the state of broken.*OSError: first line;") as caught,
        rng.isolated(),
    ):
        sound.draw()
    assert (caught.value.slug, sound.value) == ("rng-state", 0)

    with pytest.raises(SamebitsError) as caught, rng.isolated():
        raise KeyError("of the user")
    assert isinstance(caught.value.__context__, KeyError)


def test_a_source_that_refuses_a_seed_is_an_error(monkeypatch):
    class Broken(CountingSource):
        def seed(self, seed: int) -> None:
            raise ValueError("too large")

    monkeypatch.setattr(rng, "sources", lambda: (Broken(),))
    with pytest.raises(
        SamebitsError, match=r"counting \(counting 1\) does not take the seed 3: ValueError"
    ) as caught:
        rng.seed_all(3)
    assert caught.value.slug == "rng-seed"


def test_a_state_that_cannot_be_read_is_an_error(monkeypatch):
    class Broken(CountingSource):
        def get_state(self) -> bytes:
            raise RuntimeError

    monkeypatch.setattr(rng, "sources", lambda: (Broken(),))
    with pytest.raises(
        SamebitsError, match=r"the state of counting .* cannot be read: RuntimeError"
    ) as caught:
        rng.save_states()
    assert caught.value.slug == "rng-state"


def test_states_and_sources_that_do_not_meet_are_told(monkeypatch):
    state = rng.SourceState("gone", "gone 1", b"1")
    monkeypatch.setattr(rng, "sources", lambda: (CountingSource(),))
    with pytest.raises(SamebitsError, match="there are states of gone, but no such sources here"):
        rng.restore_states([*rng.save_states(), state])
    with pytest.warns(UserWarning, match="there are states of gone"):
        rng.restore_states([*rng.save_states(), state], strict=False)
    with pytest.warns(UserWarning, match="no states of counting; they are left unchanged"):
        rng.restore_states([])


def test_states_are_restored_in_another_order(recwarn):
    rng.seed_all(3)
    states = rng.save_states()
    expected = draw_all()
    rng.restore_states(reversed(states))

    assert draw_all() == expected
    assert [str(found.message) for found in recwarn if "OpenCV" not in str(found.message)] == []


def test_threads_may_isolate():
    """Generators are the process's: what is promised is the state before the outermost block."""
    rng.seed_all(3)
    expected = draw_all()
    rng.seed_all(3)

    def work() -> None:
        for _ in range(20):
            with rng.isolated():
                pass

    with rng.isolated():
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert draw_all() == expected


def test_nothing_is_imported(monkeypatch):
    """Seeding and saving touch only what is there."""
    monkeypatch.delitem(sys.modules, "cv2", raising=False)
    before = set(sys.modules)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rng.seed_all(3)
        rng.restore_states(rng.save_states())

    assert set(sys.modules) - before == set()


@pytest.mark.parametrize("states", [["x"], [("python", "3", b"")], [None]])
def test_states_that_are_none_are_refused(states):
    with pytest.raises(SamebitsError, match="expected only states that `save_rng_states` gave") as raised:
        rng.restore_states(states)
    assert raised.value.slug == "rng-state"


def test_one_state_may_be_given_alone():
    state = next(state for state in rng.save_states() if state.source == "python")
    before = random.random()
    with pytest.warns(UserWarning, match="are left unchanged"):
        rng.restore_states(state)
    assert random.random() == before
