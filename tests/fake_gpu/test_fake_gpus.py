"""Scripts on a GPU that is not the first one, on two GPUs, and on two ranks, under `verify` and `run`."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.gpu

SECOND = """
import sys
import torch

if len(sys.argv) > 1:
    torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2)).to("cuda:1")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(8, 4, device="cuda:1")
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
"""
BOTH = """
import sys
import torch

torch.manual_seed(3)
first, second = sys.argv[1:] or ("cuda:0", "cuda:1")
a, b = torch.nn.Linear(4, 8).to(first), torch.nn.Linear(8, 2).to(second)
optimizer = torch.optim.AdamW([*a.parameters(), *b.parameters()], lr=0.1)
for step in range(3):
    x = torch.randn(8, 4).to(first)
    optimizer.zero_grad()
    loss = b(torch.tanh(a(x)).to(second)).square().mean()
    loss.backward()
    optimizer.step()
print(loss.item())
"""
RANKS = """
import sys
import torch, torch.distributed as dist

dist.init_process_group("gloo")
torch.cuda.set_device(dist.get_rank())
if len(sys.argv) > 1:
    torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(8, 4, device="cuda")).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
"""


@pytest.fixture
def samebits(tmp_path):
    """Run the command on a script, on a machine with two GPUs."""

    def run(*words, script):
        (tmp_path / "train.py").write_text(script)
        return subprocess.run(
            [sys.executable, "-m", "samebits", *words], cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, "FAKE_GPU_COUNT": "2"}, check=False,
        )  # fmt: skip

    return run


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (("train.py", "3"), SECOND),
        (("--level", "op", "train.py", "3"), SECOND),
        (("--level", "op", "train.py"), BOTH),
        (("--nproc-per-node", "2", "train.py", "3"), RANKS),
    ],
    ids=["second", "second-ops", "both-ops", "ranks"],
)
def test_a_seed_makes_the_runs_identical(samebits, words, script):
    done = samebits("verify", *words, script=script)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("script", [SECOND, BOTH], ids=["second", "both"])
def test_every_op_repeats(samebits, script):
    result = json.loads(samebits("verify", "--replay", "--json", "train.py", script=script).stdout)
    replay = result["replay"]
    assert replay["calls"] > 20, replay
    assert replay["unrepeated"] == 0, replay


@pytest.mark.parametrize(("words", "script"), [((), SECOND), (("--nproc-per-node", "2"), RANKS)])
def test_without_a_seed_the_cause_is_found(samebits, words, script):
    done = samebits("verify", "--json", *words, "train.py", script=script)
    findings = json.loads(done.stdout)["findings"]
    assert {finding["cause"] for finding in findings} == {"unseeded-torch"}, done.stdout + done.stderr


def test_two_gpus_have_the_bits_of_the_cpu_in_portable_mode(samebits):
    both, cpu = (
        samebits("run", "--portable", "train.py", *devices, script=BOTH) for devices in ((), ("cpu", "cpu"))
    )
    assert both.stdout == cpu.stdout != "", both.stderr + cpu.stderr
