"""`samebits.record` in a program that has drawn before: no more is claimed than is known of that."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from samebits.comparison import compare_records

SCRIPT = """
import os
import numpy as np
import torch
import samebits

RUN = int(os.environ['RUN'])
BEFORE
model = torch.nn.Linear(4, 2)
torch.nn.utils.vector_to_parameters(torch.ones(10), model.parameters())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with samebits.record(f'{RUN}.sbr', level="op"):
    for step in range(3):
        model(DRAW + 1).square().sum().backward()
        optimizer.step()
"""
TORCH, NUMPY = "torch.randn(4)", "torch.from_numpy(np.random.rand(4).astype('float32'))"


def difference(folder, before: str, draw: str):
    """What two runs of a program are found to differ in."""
    for run in ("1", "2"):
        source = SCRIPT.replace("BEFORE", before).replace("DRAW", draw)
        subprocess.run([sys.executable, "-c", source], cwd=folder, check=True, env={**os.environ, "RUN": run})
    comparison = compare_records(folder / "1.sbr", folder / "2.sbr")
    assert comparison.verdict == "different"
    (first, *_) = comparison.findings
    return first.cause, " | ".join(first.diagnosis.evidence)


def test_a_seed_before_is_known(tmp_path):
    cause, evidence = difference(tmp_path, "torch.manual_seed(0); torch.randn(RUN)", TORCH)
    assert cause == "unknown"
    assert "torch.initial_seed() -> 0 before recording began" in evidence
    assert "never seeded" not in evidence


def test_another_seed_before_is_named(tmp_path):
    cause, evidence = difference(tmp_path, "torch.manual_seed(RUN)", TORCH)
    assert cause == "unseeded-torch"
    assert "torch.initial_seed() -> 1 before recording began and torch.initial_seed() -> 2" in evidence


@pytest.mark.parametrize("seeding", ["np.random.seed(0)", "pass"])
def test_of_numpy_nothing_is_known(tmp_path, seeding):
    """Model and generators are the same when recording begins, but NumPy's."""
    before = f"torch.manual_seed(0); {seeding}; np.random.rand(RUN)"
    cause, evidence = difference(tmp_path, before, NUMPY)
    assert cause == "unknown"
    assert "never seeded" not in evidence
