"""Order by address under `run --seed`: the same in every run, or a line that says what cannot be held."""

from __future__ import annotations

import pytest
from address_order_scripts import PLAIN, RACING, TORCH
from cli_support import samebits, write

from samebits.hooks.layout import can_fix_layout

pytestmark = pytest.mark.skipif(not can_fix_layout(), reason="addresses cannot be fixed here")
RUNS = 5
LINE = "is not held"


def runs(tmp_path, source):
    """What a script prints in each run, and what samebits says."""
    script = write(tmp_path, "script.py", source)
    done = [samebits("run", "--seed", 3, script, cwd=tmp_path) for _ in range(RUNS)]
    assert [run.returncode for run in done] == [0] * RUNS, done[0].stderr
    return [run.stdout for run in done], [run.stderr for run in done]


def test_there_are_forty_scripts():
    assert len(PLAIN) + len(TORCH) + len(RACING) >= 40


@pytest.mark.parametrize("name", [*PLAIN, *TORCH])
def test_what_follows_the_order_of_addresses_is_the_same_in_every_run(tmp_path, name):
    printed, said = runs(tmp_path, {**PLAIN, **TORCH}[name])

    assert printed[0]
    assert printed == [printed[0]] * RUNS
    assert LINE not in said[0] or name == "spawned children"  # whose pool has threads in this process


@pytest.mark.parametrize("name", RACING)
def test_what_cannot_be_held_is_said(tmp_path, name):
    printed, said = runs(tmp_path, RACING[name])

    assert printed[0]
    assert [text.count(LINE) for text in said] == [1] * RUNS, said
    assert "script.py:" in said[0]
