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


@pytest.mark.parametrize("name", SETTINGS)
def test_trainings_end_with_the_golden_digests(name):
    run = subprocess.run(
        [sys.executable, str(GOLDEN / "compute.py")],
        env={**os.environ, **SETTINGS[name]}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)["digests"]
    expected = json.loads((GOLDEN / "portable.json").read_text(encoding="utf-8"))["digests"]
    assert found == {name: digest for name, digest in expected.items() if not name.startswith("example_")}
    assert len(found) > 20
