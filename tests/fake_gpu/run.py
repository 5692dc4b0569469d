"""Runs Python with the fake device: `python tests/fake_gpu/run.py train.py`, or `-m pytest ...`.

Builds the device for this torch first, in `build/fake_gpu`, if that is older than its sources. FAKE_GPU_COUNT
says how many devices there are, FAKE_GPU_MEMORY how many bytes each has, FAKE_GPU_DELAY how many microseconds
a task waits before it begins; native/faults.h has what can be wrong with one.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path

from build import HERE, build


def main() -> None:
    """Build, and become that Python."""
    folder = Path(__file__).resolve().parents[2] / "build" / "fake_gpu" / version("torch")
    build(folder)
    paths = [str(HERE / "site"), os.environ.get("PYTHONPATH", "")]
    os.environ |= {
        "LD_PRELOAD": str(folder / "libcuda.so.1"),
        "FAKE_GPU_KERNELS": str(folder / "libkernels.so"),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])  # noqa: S606 - Python itself


if __name__ == "__main__":
    main()
