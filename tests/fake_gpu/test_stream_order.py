"""Streams that do not wait for each other: the cause that `verify` finds, and the change that it tries."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.gpu

# Chance that nothing records decides whether the other stream has ended when its values are used.
HEAD = """
import ctypes
import torch

torch.manual_seed(0)
c = ctypes.CDLL(None)

def linger():
    chance = ctypes.create_string_buffer(1)
    c.getentropy(chance, 1)
    c.usleep(120_000 * (chance.raw[0] % 2))

side = torch.cuda.Stream()
model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
SCALED = """
for step in range(8):
    batch = torch.randn(8, 4).cuda()
    with torch.cuda.stream(side):
        scaled = batch * 2
    linger()
    optimizer.zero_grad()
    model(scaled).square().mean().backward()
    optimizer.step()
"""


def verify(tmp_path, *options):
    (tmp_path / "train.py").write_text(HEAD + SCALED)
    result = subprocess.run(
        [sys.executable, "-m", "samebits", "verify", "--json", *options, "train.py"],
        cwd=tmp_path, env={**os.environ, "FAKE_GPU_DELAY": "1500"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode in (0, 1), result.stderr
    return json.loads(result.stdout)


def test_the_cause_is_found_and_the_change_is_tried(tmp_path):
    found = verify(tmp_path, "--fix", "--budget", "1500")
    assert found["verdict"] == "different"
    [finding] = found["findings"]
    assert finding["cause"] == "stream-order"
    assert finding["remedy"]["confirmed"] is True, finding
    assert "side.wait_stream(torch.cuda.current_stream())" in json.dumps(finding)


def test_with_one_stream_at_a_time_the_runs_are_identical(tmp_path):
    assert verify(tmp_path, "--pin", "serial-streams", "--runs", "4")["verdict"] == "identical"
