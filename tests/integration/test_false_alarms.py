"""Programs that compute the same, although names, order or the life of objects are chance."""

from __future__ import annotations

import json
import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

OPTIMIZERS = """
# One optimizer per tensor, stepped in an order that is chance, as that of a set. Each clips its gradient.
import os, sys, torch
torch.manual_seed(0)
tensors = [torch.randn(3, requires_grad=True) for _ in range(8)]
optimizers = {}
def clip(optimizer, *_):
    optimizer.param_groups[0]["params"][0].grad.clamp_(-0.1, 0.1)
for step in range(4):
    loss = sum((t ** 2).mean() for t in tensors)
    loss.backward()
    if "noise" in sys.argv and step == 2:
        torch.seed()
        tensors[5].grad += torch.rand(3)
    for t in sorted(tensors, key=lambda t: os.urandom(4)):
        if t not in optimizers:
            optimizers[t] = torch.optim.Adam([t], 0.1)
            optimizers[t].register_step_pre_hook(clip)
        optimizers[t].step()
    for t in tensors:
        t.grad = None
print(loss.item())
"""
MODELS = """
# A model per round; a cycle keeps it alive until the collector comes, at another time in each run.
import copy, os, sys, torch
torch.manual_seed(0)
class Surrogate(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.inner = torch.nn.Linear(3, 2)
        self.register_buffer("data", torch.zeros(n))
        self.itself = [self]
for n in range(1, 9):
    model = Surrogate(n % 3 + 1)
    mean = copy.deepcopy(model.inner)
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model.inner(torch.ones(2, 3)).square().mean()
        loss.backward()
        optimizer.step()
        decay = os.urandom(1)[0] / 256 if "noise" in sys.argv and n == 6 else 0.5
        with torch.no_grad():
            for old, new in zip(mean.parameters(), model.inner.parameters()):
                old.lerp_(new, decay)
    junk = [[] for _ in range(os.urandom(1)[0] * 10)]
print(loss.item())
"""


def verify(folder: Path, source: str, *words: str) -> dict[str, Any]:
    """The JSON object of `verify --no-localise`."""
    (folder / "script.py").write_text(dedent(source))
    command = [sys.executable, "-m", "samebits", "verify", "--no-localise", "--json", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == {"identical": 0, "different": 1}[found["verdict"]], done.stderr
    return found


@pytest.mark.parametrize("options", [(), ("--full",), ("--steps", "3")], ids=["stops", "full", "steps"])
def test_optimizers_in_the_order_of_a_set(tmp_path: Path, options: tuple[str, ...]) -> None:
    """They step after one backward pass, so together they make one step."""
    found = verify(tmp_path, OPTIMIZERS, *options, "script.py")
    assert (found["verdict"], found["steps"]) == ("identical", 3 if "--steps" in options else 4)
    assert any("in a different order" in note for note in found["notes"])
    assert len(set(found["final_digest"])) == 1


def test_a_difference_among_many_optimizers_is_found_in_its_step(tmp_path: Path) -> None:
    found = verify(tmp_path, OPTIMIZERS, "script.py", "noise")
    assert found["reason"].startswith("the state differs at step 2: ")


@pytest.mark.parametrize("options", [(), ("--full",)], ids=["stops", "full"])
def test_models_that_the_collector_has_not_found_yet(tmp_path: Path, options: tuple[str, ...]) -> None:
    """When it comes is no part of the training."""
    found = verify(tmp_path, MODELS, *options, "script.py")
    assert (found["verdict"], found["steps"]) == ("identical", 24)


def test_a_moving_average_that_no_optimizer_steps_is_state(tmp_path: Path) -> None:
    found = verify(tmp_path, MODELS, "script.py", "noise")
    assert found["verdict"] == "different"
    assert "the 16 steps before it are identical" in found["reason"]


CLOSURES = """
# Each optimizer makes its own backward pass, in a closure.
import torch
torch.manual_seed(0)
layers = [torch.nn.Linear(3, 1) for _ in range(2)]
optimizers = [torch.optim.SGD(layer.parameters(), 0.1) for layer in layers]
for _ in range(3):
    for layer, optimizer in zip(layers, optimizers):
        def closure():
            optimizer.zero_grad()
            loss = layer(torch.ones(2, 3)).square().mean()
            loss.backward()
            return loss
        optimizer.step(closure)
"""


def test_each_closure_is_a_step(tmp_path: Path) -> None:
    """Its backward pass belongs to its optimizer alone."""
    found = verify(tmp_path, CLOSURES, "script.py")
    assert (found["verdict"], found["steps"]) == ("identical", 6)
