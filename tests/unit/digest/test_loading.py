"""Which back end is used, and what happens when it is not there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from samebits.digest import native

SOURCE = Path(__file__).parents[3] / "src"


def ask(backend, code="from samebits.digest import backend_name; print(backend_name())"):
    """Runs code in a fresh interpreter that asks for a back end."""
    env = {**os.environ, "PYTHONPATH": str(SOURCE), native.BACKEND_VARIABLE: backend}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("backend", ["torch", "scalar"])
def test_the_variable_chooses(backend):
    assert ask(backend).stdout.strip() == backend


def test_an_unknown_back_end_is_refused():
    done = ask("sse9")
    assert done.returncode != 0
    assert "SAMEBITS_DIGEST_BACKEND=sse9" in done.stderr


def test_importing_is_light():
    """The package and its names come without torch until one is used."""
    done = ask(
        "",
        "import sys, samebits.digest; print('torch' in sys.modules, 'numpy' in sys.modules)",
    )
    assert done.stdout.split() == ["False", "False"]


def test_a_broken_library_is_not_used():
    assert native.open_library(Path(__file__)) is None


def test_a_foreign_library_is_not_used():
    """A shared library without our functions, such as one left over from another version."""
    import _ctypes

    assert native.open_library(Path(_ctypes.__file__)) is None


def test_a_stale_library_is_not_used(monkeypatch):
    path = native.find_library()
    if path is None:
        pytest.skip("no C library in this installation")
    assert native.open_library(path) is not None
    monkeypatch.setattr(native, "ABI", native.ABI + 1)
    assert native.open_library(path) is None
