"""Ops that return memory which nothing has filled: it is no value, and no difference begins there."""

import json
import subprocess
import sys

import pytest
import torch

from samebits.recording.probes.op_calls import WORKSPACES, spec_of

ATTENTION = [name for name in WORKSPACES if "attention" in name]
EFFICIENT = "aten::_scaled_dot_product_efficient_attention"
UNFILLED = {"philox_seed", "philox_offset", "rng_state", "unused"}
# The attention that CUDA has, on the CPU: without dropout it fills neither seed nor offset.
SCRIPT = """
import time

import torch

library = torch.library.Library("aten", "IMPL")


def attention(query, key, value, bias, with_sums, dropout=0.0, is_causal=False, *, scale=None):
    unfilled = torch.tensor(time.time_ns())
    return (query @ key.mT).softmax(-1) @ value, torch.zeros(1), unfilled, unfilled + 1



def backward(gradient, *_, **__):
    chance = float(time.time_ns() % 1000)  # as atomic additions come in another order
    return gradient * chance, gradient * 2, gradient * 3, None


library.impl("_scaled_dot_product_efficient_attention", attention, "CPU")
library.impl("_scaled_dot_product_efficient_attention_backward", backward, "CPU")
torch.manual_seed(0)
weight = torch.ones(4, 4, requires_grad=True)
query, key, value = torch.randn(3, 1, 2, 4, 4)
query = query * weight
ops = torch.ops.aten
mixed = ops._scaled_dot_product_efficient_attention(query, key, value, None, True)[0]
mixed.sum().backward()
print(weight.grad.sum().item())
"""


def tensors(arguments):
    """Names of those that are always there, but for the lengths of nested tensors."""
    kinds = [(argument.name, str(argument.type)) for argument in arguments]
    return [name for name, kind in kinds if kind == "Tensor" and not name.startswith("cum_seq")]


@pytest.mark.parametrize("name", ATTENTION)
def test_positions_of_what_attention_does_not_fill(name):
    """They are those of the schemas."""
    returned = tensors(getattr(torch.ops.aten, name.removeprefix("aten::")).default._schema.returns)
    assert {returned[position] for position in WORKSPACES[name]} <= UNFILLED


@pytest.mark.parametrize("name", [name.replace("_forward", "") + "_backward" for name in ATTENTION])
def test_positions_of_what_its_backward_pass_reads(name):
    """The same for what is passed on."""
    op = getattr(torch.ops.aten, name.removeprefix("aten::")).default
    positions = spec_of(op, len).workspaces_read
    read = tensors(op._schema.arguments)
    assert len(positions) == 2
    assert {read[position] for position in positions} <= UNFILLED


@pytest.mark.parametrize("options", [[], ["--replay"]])
def test_a_difference_does_not_begin_in_unfilled_memory(options, tmp_path):
    """The forward pass is neither the first op that differs nor one that does not repeat."""
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "samebits", "verify", "--json", "--quick", *options, "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)
    assert found["verdict"] == "different", done.stderr
    assert not options or found["replay"]["unrepeated"] == 1
    assert {finding["op"] for finding in found["findings"]} == {f"{EFFICIENT}_backward.default"}
