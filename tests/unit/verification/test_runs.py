"""What `--stress` changes in a run, and how the processes of several runs are started."""

from __future__ import annotations

import subprocess
import sys

import pytest

from samebits._runtime.address_layout import can_fix_layout, fixed_layout
from samebits.recording.launch import Outcome
from samebits.recording.runner import Target
from samebits.recording.settings import RecordingSettings
from samebits.verification import runs
from samebits.verification._concurrency import APART_S
from samebits.verification.runs import Job, Script, run_jobs, stress


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


def test_runs_begin_so_far_apart_that_no_second_is_the_same(tmp_path, monkeypatch):
    """A seed made of the time of day would be the same in both otherwise."""
    asked = []

    def launch_all(requests, apart_s):
        asked.append((len(requests), apart_s))
        return tuple(Outcome(0, None) for _ in requests)

    monkeypatch.setattr(runs, "launch_all", launch_all)
    script = Script(Target("train.py", None, ()))
    run_jobs([Job(script, RecordingSettings(str(tmp_path / name))) for name in ("a", "b")])
    assert asked == [(2, APART_S)]
    assert APART_S > 1.0
