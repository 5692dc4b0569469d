"""Methods of C types are replaced and put back."""

from __future__ import annotations

import decimal

import pytest
import torch

from samebits._runtime.patching import StaticTypePatches


class Child(torch.Generator):
    """Inherits the method."""


def initial_seeds() -> list[int]:
    """Called often, so that the interpreter has the method in its caches."""
    return [made.initial_seed() for made in [torch.Generator().manual_seed(3), Child().manual_seed(3)] * 20]


def test_a_method_is_replaced_for_all_objects_and_put_back():
    original = vars(torch.Generator)["initial_seed"]
    patches = StaticTypePatches()
    assert set(initial_seeds()) == {3}
    patches.set(torch.Generator, "initial_seed", lambda self: original(self) + 1)
    try:
        assert set(initial_seeds()) == {4}
        patches.set(torch.Generator, "initial_seed", lambda self: 9)
        assert set(initial_seeds()) == {9}
    finally:
        patches.restore()

    assert set(initial_seeds()) == {3}
    assert vars(torch.Generator)["initial_seed"] is original
    patches.restore()


def test_a_method_that_the_type_does_not_have_is_refused():
    with pytest.raises(KeyError):
        StaticTypePatches().set(decimal.Decimal, "no_such_method", print)
