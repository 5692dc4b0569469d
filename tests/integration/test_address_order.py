"""Order by address under `run --seed`: the same in every run, or a line that says what cannot be held."""

from __future__ import annotations

import sys

import pytest
from address_order_scripts import PLAIN, RACING, TORCH
from cli_support import samebits, write

from samebits._runtime.address_layout import can_fix_layout

pytestmark = pytest.mark.skipif(not can_fix_layout(), reason="addresses cannot be fixed here")
RUNS = 5
LINE = "is not held"


def runs(tmp_path, source):
    """What a script prints in each run, and what samebits says; each run finds more files in the folder."""
    script = write(tmp_path, "script.py", source)
    done = []
    for number in range(RUNS):
        done.append(samebits("run", "--seed", 3, script, cwd=tmp_path))
        for file in range(4**number):
            (tmp_path / f"{'x' * (file % 90)}-{number}-{file}.log").touch()
    assert [run.returncode for run in done] == [0] * RUNS, done[0].stderr
    return [run.stdout for run in done], [run.stderr for run in done]


def test_there_are_forty_scripts():
    assert len(PLAIN) + len(TORCH) + len(RACING) >= 40


@pytest.mark.parametrize("name", [*PLAIN, *TORCH])
def test_what_follows_the_order_of_addresses_is_the_same_in_every_run(tmp_path, name):
    if name == "spawned children" and sys.version_info < (3, 11):
        pytest.skip("a fresh process of multiprocessing lists the folder there")
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


VERIFIED = """
    import torch
    model = torch.nn.Sequential(*[torch.nn.Linear(7, 7) for _ in range(20)])
    parameters = set(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    for step in range(2):
        optimizer.zero_grad()
        model(torch.randn(5, 7)).square().sum().backward()
        weight = sum(p.square().sum() for p in parameters).item()
        for p in parameters:
            p.grad.add_(p.detach(), alpha=weight * 1e-3)
        optimizer.step()
    torch.save(model.state_dict(), "model.pt")
"""


def test_both_runs_of_verify_have_the_same_addresses(tmp_path):
    """Though only the second has an earlier run, and the first leaves a file in the folder."""
    script = write(tmp_path, "script.py", VERIFIED)
    done = samebits("verify", "--seed", 3, "--quick", script, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
