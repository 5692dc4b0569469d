"""What the tests of kernels for a GPU that are built for the host have in common."""

from __future__ import annotations

import ctypes
import fcntl
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent


def load(path: Path):
    """A program of the tests as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"{path.stem}_on_host", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def built(folder: Path, *options: str, is_watched: bool = False) -> Path:
    """The library of kernels, built by the first process that asks for it."""
    folder.mkdir(exist_ok=True)
    library = folder / "libkernels.so"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            load(TESTS / "fake_gpu/build.py").build_kernels(folder, *options, is_watched=is_watched)
    return library


def races_in(library: ctypes.CDLL) -> str:
    """What a library that is watched has found since it was asked last; nothing if it is not watched."""
    if not hasattr(library, "races_found"):
        return ""
    library.races_found.restype = ctypes.c_char_p
    return library.races_found().decode()


def shared_folder(tmp_path_factory) -> Path:
    """One that the processes of pytest-xdist have in common."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base


def trained(library: Path, *words: str, **variables: str) -> dict:
    """What tests/host_kernels.py prints: digests of trainings, and the kernels that ran."""
    done = subprocess.run(
        [sys.executable, str(TESTS / "host_kernels.py"), str(library), *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)
