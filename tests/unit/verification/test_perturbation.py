"""What `--stress` changes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from samebits._runtime.address_layout import can_fix_layout, fixed_layout
from samebits.verification.runs import stress


def test_every_run_gets_another_one():
    """And the same one when asked again."""
    first, second = stress(0, {}), stress(1, {})

    assert first == stress(0, {})
    for name in first.environment:
        assert first.environment[name] != second.environment[name]
    assert first.scheduling_noise != second.scheduling_noise != 0


def test_a_pinned_hash_seed_is_left_alone():
    """The user has said that it matters."""
    assert "PYTHONHASHSEED" not in stress(0, {"PYTHONHASHSEED": "0"}).environment
    assert "PYTHONHASHSEED" in stress(0, {"PYTHONHASHSEED": "random"}).environment


@pytest.mark.skipif(not can_fix_layout(), reason="address space randomisation cannot be switched off here")
def test_a_fixed_layout_reaches_children_and_only_them():
    """The first run is at fixed addresses; afterwards all is as before."""
    code = "import ctypes; print(ctypes.CDLL(None).personality(0xFFFFFFFF) & 0x40000)"
    command = [sys.executable, "-c", code]

    with fixed_layout(fixed=stress(0, {}).fixed_layout):
        inside = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    outside = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert (inside.strip(), outside.strip()) == (str(0x40000), "0")
