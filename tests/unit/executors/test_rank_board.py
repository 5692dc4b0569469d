"""The board of a launch in a real store, and the variables of a rank."""

from __future__ import annotations

import random
import socket
import time
from datetime import timedelta

import pytest
import torch

from samebits.environment.distributed import launcher_variables, rank_facts
from samebits.errors import SamebitsError
from samebits.executors.board import Board, Place, place_of
from samebits.executors.rank_worker import device_of_rank


@pytest.fixture
def place():
    """A place where no store is yet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return Place("127.0.0.1", free.getsockname()[1], "a launch", is_held=False)


def becomes_true(question):
    """Whether it is, soon: what one client writes reaches the others a little later."""
    until = time.monotonic() + 60
    while not question() and time.monotonic() < until:
        time.sleep(0.01)
    return question()


def test_calls_and_answers_of_any_size(place):
    """Also those that have more bytes than the store takes in one message."""
    first = Board(place, is_first=True)
    other = Board(place)
    call, answer = random.Random(0).randbytes(20_000_000), b""

    number = other.claim()
    assert not other.is_there(number)
    first.put(0, call)
    assert becomes_true(lambda: other.is_there(number))
    assert other.take(number) == call
    other.answer(number, answer)
    assert becomes_true(lambda: first.is_answered(0))
    assert first.take_answer(0) == answer
    assert not other.is_ended()
    first.end()
    assert becomes_true(other.is_ended)


def test_each_call_is_made_once(place):
    """Numbers are given out one after the other, to whoever asks."""
    first, other = Board(place, is_first=True), Board(place)
    assert [first.claim(), other.claim(), first.claim()] == [0, 1, 2]
    first.cancel(1)
    assert becomes_true(lambda: other.is_cancelled(1))
    assert not other.is_cancelled(2)


def test_a_restart_has_another_board(place):
    """Calls of the ranks before it are none of its own."""
    first = Board(place, is_first=True)
    first.end()
    again = Board(Place(place.address, place.port, "restarted", is_held=True))
    assert (again.claim(), again.is_ended()) == (0, False)


def test_no_store_is_told(place, monkeypatch):
    """By its address."""
    monkeypatch.setattr("samebits.executors.board._PATIENCE", timedelta(seconds=1))
    with pytest.raises(SamebitsError, match=f"no store of the launch at 127.0.0.1:{place.port}"):
        Board(place)


def test_the_variables_of_torchrun():
    """All are given up, so that the runs are no ranks; what others set stays."""
    variables = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    variables |= {"MASTER_ADDR": "h", "MASTER_PORT": "1", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    assert set(launcher_variables({**variables, "OMP_NUM_THREADS": "1", "HOME": "/"})) == set(variables)
    facts = rank_facts(variables, 1)
    place = place_of(facts, variables)
    assert (place.address, place.port, place.is_held) == ("h", 1, True)


def test_each_rank_of_a_machine_has_a_device(monkeypatch):
    """Of those that are visible; where there are fewer than ranks, all see all."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    ranks = {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    assert device_of_rank(ranks) == {"CUDA_VISIBLE_DEVICES": "1"}
    assert device_of_rank({**ranks, "CUDA_VISIBLE_DEVICES": "4,7"}) == {"CUDA_VISIBLE_DEVICES": "7"}
    assert device_of_rank({"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}) == {}
    assert device_of_rank({**ranks, "LOCAL_WORLD_SIZE": "3"}) == {}
    assert device_of_rank({}) == {}
