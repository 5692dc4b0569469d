"""The intervention `serial-streams`: what it waits for on a GPU, and that nothing of it remains."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from samebits.interventions.plan import ActiveInterventions

SCRIPT = """
import sys
import torch
from samebits.interventions.plan import ActiveInterventions

process = ActiveInterventions(sys.argv[1:])
process.install()
side, x = torch.cuda.Stream(), torch.ones(1024, 1024, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(side):
    for _ in range(5):
        y = x + 1
print(side.query())
torch.cuda.synchronize()
with torch.cuda.stream(side):
    for _ in range(5):
        y = x + 1
    copied = y.to("cpu", non_blocking=True)
    print(side.query())
torch.cuda.synchronize()
with side:
    for _ in range(5):
        y = x + 1
print(side.query())
torch.cuda.synchronize()
torch.accelerator.set_stream(side)
for _ in range(5):
    y = x + 1
torch.accelerator.set_stream(torch.cuda.default_stream())
print(side.query())
with torch.Stream(device="cuda") as other:
    for _ in range(5):
        y = x + 1
print(other.query())
kept = torch.zeros(1024, 1024).pin_memory()
torch.cuda.synchronize()
kept.copy_(x + 2, non_blocking=True)
print(kept.sum().item() == 3 * 1024 * 1024)
"""


@pytest.mark.gpu
@pytest.mark.parametrize(("names", "ended"), [((), "False"), (("serial-streams",), "True")])
def test_a_stream_has_ended_its_work_when_another_one_goes_on(names, ended):
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, *names],
        env={**os.environ, "FAKE_GPU_DELAY": "2000"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    first, copied, *others = result.stdout.split() or (result.stderr,) * 6
    assert [first, *others] == [ended] * 5
    assert copied == "True" or not names


SECOND = """
import torch
from samebits.interventions.plan import ActiveInterventions

ActiveInterventions(("serial-streams",)).install()
x = torch.ones(1024, 1024, device="cuda:1")
print(torch.cuda.current_device(), (x + 1).to("cpu", non_blocking=True).sum().item() / 2**20)
"""


@pytest.mark.gpu
def test_a_copy_from_another_gpu_is_waited_for():
    if torch.cuda.device_count() < 2 and not hasattr(torch, "_fake_gpu"):
        pytest.skip("there is one GPU")
    result = subprocess.run(
        [sys.executable, "-c", SECOND],
        env={**os.environ, "FAKE_GPU_DELAY": "20000", "FAKE_GPU_COUNT": "2"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.stdout.strip() == "0 2.0", result.stderr


SUBCLASS = """
import torch
from samebits.interventions.plan import ActiveInterventions

seen = []

class Only(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        seen.append(function.__name__)
        return super().__torch_function__(function, types, args, kwargs or {})

made = torch.ones(2).as_subclass(Only)
ActiveInterventions(("serial-streams",)).install()
made.to(torch.float64)
print(seen)
"""


def test_a_subclass_of_tensor_sees_nothing_but_the_copy():
    result = subprocess.run([sys.executable, "-c", SUBCLASS], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "['to']", result.stderr


CAPTURED = """
import torch
from samebits.interventions.plan import ActiveInterventions

ActiveInterventions(("serial-streams",)).install()
x, side, graph = torch.ones(4, device="cuda"), torch.cuda.Stream(), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    captured = torch.cuda.current_stream()
    with torch.cuda.stream(side):
        side.wait_stream(captured)
        y = x + 1
    torch.cuda.current_stream().wait_stream(side)
    z = y * 2
graph.replay()
print(z.tolist())
"""


@pytest.mark.gpu
def test_a_graph_with_two_streams_is_captured():
    result = subprocess.run([sys.executable, "-c", CAPTURED], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "[4.0, 4.0, 4.0, 4.0]", result.stderr


def test_it_leaves_nothing_behind_and_the_cpu_alone():
    before = (torch.cuda.set_stream, torch.Tensor.to, torch.Tensor.copy_, "to" in vars(torch.Tensor))
    process = ActiveInterventions(("serial-streams",))
    process.install()
    try:
        assert torch.cuda.set_stream is not before[0]
        assert torch.ones(2).to(torch.float64, non_blocking=True).tolist() == [1, 1]
        assert torch.zeros(2).copy_(torch.ones(2)).cpu().tolist() == [1, 1]
    finally:
        process.remove()
    after = (torch.cuda.set_stream, torch.Tensor.to, torch.Tensor.copy_, "to" in vars(torch.Tensor))
    assert after == before


COMPILED = """
import torch
from samebits.interventions.plan import ActiveInterventions

ActiveInterventions(("serial-streams",)).install()
compiled = torch.compile(lambda x: x.to(torch.float64) + 1, backend="eager", fullgraph=True)
print(compiled(torch.ones(2)).tolist())
"""


def test_code_with_copies_can_still_be_compiled():
    result = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "[2.0, 2.0]", result.stderr
