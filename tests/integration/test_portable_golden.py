"""Golden digests of portable mode, in fresh processes under the best kernels and under the plainest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"
SETTINGS = {
    "best kernels, 2 threads": {"OMP_NUM_THREADS": "2"},
    "scalar kernels, 1 thread, plain torch": {
        "SAMEBITS_PORTABLE_BACKEND": "scalar",
        "OMP_NUM_THREADS": "1",
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_CBWR": "COMPATIBLE",
    },
}


def golden():
    return json.loads((GOLDEN / "portable.json").read_text(encoding="utf-8"))["digests"]


def computed(*names, **variables):
    """The digests that a fresh process with these variables finds."""
    run = subprocess.run(
        [sys.executable, str(GOLDEN / "compute.py"), *names],
        env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)["digests"]


def test_the_reference_gives_the_golden_digests():
    names = ("line_fit", "logistic_regression", "vae", "gan", "graph", "metric", "rotary")
    found = computed(*names, SAMEBITS_PORTABLE_BACKEND="reference")
    assert found == {name: golden()[name] for name in names}


@pytest.mark.parametrize("name", SETTINGS)
def test_trainings_end_with_the_golden_digests(name):
    expected = {name: digest for name, digest in golden().items() if not name.startswith("example_")}
    assert computed(**SETTINGS[name]) == expected
    assert len(expected) > 20
