"""The intervention `fill` inside NumPy: its own cache of small blocks hands out zeros too."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

from samebits.interventions.memory import fill_arrays


def left_empty(n: int) -> list[float]:
    """What arrays hold that nobody wrote, after others of their size were freed."""
    full = np.full(n, 7.5)
    del full
    made = np.empty(n)
    total = float(made.sum())
    del made
    full = np.full(n, 7.5)
    del full
    like = np.empty_like(np.arange(float(n)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions of NumPy warn of just this
        masked = np.add(np.ones(n), np.ones(n), where=np.zeros(n, bool))
    return [total, float(like.sum()), float(masked.sum())]


@pytest.fixture
def filled():
    """NumPy gives zeros meanwhile."""
    put_back = fill_arrays(np)
    assert put_back is not None
    yield
    put_back()


@pytest.mark.parametrize("n", [3, 30, 127, 128, 5000])
def test_new_arrays_are_zero(filled, n):
    assert left_empty(n) == [0.0, 0.0, 0.0]


def test_in_other_threads_too(filled):
    found = []
    thread = threading.Thread(target=lambda: found.append(left_empty(30)))
    thread.start()
    thread.join()
    assert found == [[0.0, 0.0, 0.0]]


def test_arrays_outlive_it_both_ways():
    before = np.full(30, 1.5)
    put_back = fill_arrays(np)
    meanwhile, grown = np.arange(30.0), np.arange(3)
    del before
    put_back()
    grown.resize(2000, refcheck=False)
    assert meanwhile.sum() + grown.sum() == 438
    del meanwhile, grown
    assert left_empty(30)[0] == 30 * 7.5
