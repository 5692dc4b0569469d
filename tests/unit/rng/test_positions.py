"""The positions of generators: known, or left out where they cannot be read; never a guess."""

from __future__ import annotations

import random
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from samebits.determinism._drift import RngWatch
from samebits.rng.sources import BUILT_IN


def positions():
    return RngWatch().positions()


def foreign_torch(**names):
    module = ModuleType("torch")
    vars(module).update(names)
    return module


def numpy_with(bits):
    random_module = SimpleNamespace(mtrand=SimpleNamespace(_rand=SimpleNamespace(_bit_generator=bits)))
    return SimpleNamespace(random=random_module)


def refused():
    raise RuntimeError("Cannot be called while a graph is captured")


REFUSING = SimpleNamespace(get_state=refused)
STATES = [
    SimpleNamespace(),
    REFUSING,
    SimpleNamespace(get_state=lambda: None),
    SimpleNamespace(get_state=lambda: b"text"),
    SimpleNamespace(get_state=lambda: torch.zeros(8, dtype=torch.uint8)),
    SimpleNamespace(get_state=lambda: torch.zeros(5056, dtype=torch.uint8, device="meta")),
]


def test_positions_follow_the_draws():
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    first = positions()
    assert {"python", "numpy", "torch"} <= first.keys()
    random.random(), np.random.rand(), torch.rand(1)
    assert all(positions()[name] != first[name] for name in ("python", "numpy", "torch"))


@pytest.mark.parametrize("name", ["torch", "numpy"])
@pytest.mark.parametrize("found", [None, ModuleType("empty")])
def test_a_library_that_is_missing_or_half_imported_has_no_position(monkeypatch, name, found):
    monkeypatch.setitem(sys.modules, name, found)
    assert name not in positions()
    assert "python" in positions()


@pytest.mark.parametrize("generator", STATES)
def test_a_foreign_torch_has_no_position(monkeypatch, generator):
    monkeypatch.setitem(sys.modules, "torch", foreign_torch(default_generator=generator))
    assert "torch" not in positions()


def test_a_state_of_another_layout_has_no_position(monkeypatch):
    generator = SimpleNamespace(get_state=lambda: torch.zeros(5056, dtype=torch.uint8))
    monkeypatch.setitem(sys.modules, "torch", foreign_torch(default_generator=generator))
    assert "torch" not in positions()


@pytest.mark.parametrize("generator", STATES)
def test_a_device_whose_state_cannot_be_read_has_no_position(monkeypatch, generator):
    good = SimpleNamespace(get_state=lambda: torch.arange(16, dtype=torch.uint8))
    cuda = SimpleNamespace(is_initialized=lambda: True, default_generators=(generator, good))
    monkeypatch.setitem(sys.modules, "torch", foreign_torch(cuda=cuda))
    known = positions()
    assert "cuda:0" not in known
    assert known["cuda:1"] == (0x0706050403020100, 0x0F0E0D0C0B0A0908)


@pytest.mark.parametrize("cuda", [SimpleNamespace(), SimpleNamespace(is_initialized=lambda: True)])
def test_a_build_without_the_names_of_cuda_has_no_position(monkeypatch, cuda):
    monkeypatch.setitem(sys.modules, "torch", foreign_torch(cuda=cuda))
    assert not [name for name in positions() if name.startswith("cuda")]


@pytest.mark.parametrize("address", [{}, {"ctypes": None}, {"ctypes": SimpleNamespace(state_address=0)}])
def test_a_foreign_bit_generator_has_no_position(monkeypatch, address):
    bits = type("MT19937", (), address)()
    monkeypatch.setitem(sys.modules, "numpy", numpy_with(bits))
    assert "numpy" not in positions()


def test_a_generator_that_becomes_unreadable_did_not_go_back(monkeypatch):
    watch = RngWatch()
    watch.begin()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", foreign_torch(default_generator=REFUSING))
        assert watch.note("step 1") == []
    assert watch.note("step 2") == []


def test_every_source_has_a_reader():
    for source in BUILT_IN:
        assert isinstance(dict(source.position_reader()()), dict)
