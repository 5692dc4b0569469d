"""Races in the kernels for a GPU, looked for without one, in all trainings and in the tests of a GPU.

`test_gpu_kernel_races.py` says what is looked for, and shows that it is found.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from host_kernels_support import TESTS, built, load, shared_folder, trained

GOLDEN = json.loads((TESTS / "golden/portable.json").read_text())["digests"]
TRAININGS = [name for name in GOLDEN if not name.startswith("example_")]
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
# Runs tests of a file, and prints the kernels that they launched.
LAUNCHED = """
import sys, host_kernels, pytest
launched, launch = set(), host_kernels.HostKernels.launch_tiles
def noted(self, unit, name, *rest):
    launched.add(name)
    return launch(self, unit, name, *rest)
host_kernels.HostKernels.launch_tiles = noted
status = pytest.main(["-q", "-o", "addopts=", "-p", "no:cacheprovider", *sys.argv[1:]])
print("launched:", *launched)
raise SystemExit(status)
"""
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


def test_every_kernel_is_launched(library):
    """By the tests above that are those of a GPU; the digest's kernels have tests of their own."""
    words = [__file__, "-k", "TestAsOnAGpu or test_functions"]
    paths = os.pathsep.join([str(TESTS), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", LAUNCHED, *words],
        env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    launched = done.stdout.rsplit("launched:", 1)[1].split()
    symbols = load(TESTS / "fake_gpu/build.py").symbols(library, "-D", "--defined-only")
    kernels = {name.removeprefix("host_") for name in symbols if name.startswith("host_")}

    assert {name for name in kernels if not name.startswith("digest_")} == set(launched)
