"""Races in the kernels for a GPU, looked for without one, in all trainings and in the tests of a GPU.

`test_gpu_kernel_races.py` says what is looked for, and shows that it is found.
"""

from __future__ import annotations

import json
import shutil

import pytest
from host_kernels_support import TESTS, built, load, shared_folder, trained

GOLDEN = json.loads((TESTS / "golden/portable.json").read_text())["digests"]
TRAININGS = [name for name in GOLDEN if not name.startswith("example_")]
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
on_host = load(TESTS / "unit/portable/test_gpu_kernels_on_host.py")
both = on_host.both


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The kernels, built for the host; each access is watched."""
    return built(shared_folder(tmp_path_factory) / "watched-kernels", is_watched=True)


class TestAsOnAGpu(on_host.TestAsOnAGpu):
    """Every launch of these ends in an error if a race was seen."""


test_functions = on_host.test_functions


@pytest.mark.parametrize("order", [(), ("--reverse",)], ids=["forwards", "backwards"])
@pytest.mark.parametrize("name", TRAININGS)
def test_trainings(name, order, library):
    found = trained(library, name, *order)

    assert found["digests"] == {name: GOLDEN[name]}
