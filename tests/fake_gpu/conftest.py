"""These tests need the fake device, which `run.py` gives a process."""

import os
import subprocess
import sys

import pytest

HAS_DEVICE = "FAKE_GPU_KERNELS" in os.environ
collect_ignore_glob = [] if HAS_DEVICE else ["test_*.py"]


@pytest.fixture
def script(tmp_path):
    """Write a program of that text, and return its path."""

    def write(text, name="train.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def run():
    """Run another process with this device, and return it when it has ended."""

    def call(*words, **variables):
        return subprocess.run(
            [sys.executable, *words],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    return call
