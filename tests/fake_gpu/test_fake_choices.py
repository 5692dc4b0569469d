"""What torch chooses for a GPU, as the record of a run has it: ops of attention, results of TunableOp."""

import json
import os
import subprocess
import sys

import pytest

from samebits.records.reader import RecordReader

pytestmark = pytest.mark.gpu

ATTENTION = """
import sys
import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
torch.use_deterministic_algorithms("deterministic" in sys.argv)
kind = torch.bfloat16 if "bfloat16" in sys.argv else torch.float32
layer = torch.nn.Linear(64, 64).cuda().to(kind)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

def block(x):
    h = layer(x)
    return torch.nn.functional.scaled_dot_product_attention(h, h, h, is_causal=True)

for _ in range(2):
    x = torch.randn(1, 2, 32, 64, device="cuda", dtype=kind, requires_grad=True)
    optimizer.zero_grad()
    y = checkpoint(block, x, use_reentrant=True) if "checkpoint" in sys.argv else block(x)
    y.float().square().mean().backward()
    optimizer.step()
"""
FLEX = """
import torch
from torch.nn.attention.flex_attention import flex_attention

torch.manual_seed(0)
layer = torch.nn.Linear(64, 64).cuda()
bias = torch.nn.Parameter(torch.randn(128, device="cuda"))
optimizer = torch.optim.SGD([*layer.parameters(), bias], lr=0.1)
for _ in range(2):
    h = layer(torch.randn(1, 2, 128, 64, device="cuda"))
    optimizer.zero_grad()
    y = flex_attention(h, h, h, score_mod=lambda s, b, n, q, k: s + bias[(q - k).abs()])
    y.square().mean().backward()
    optimizer.step()
print(float(bias.sum()).hex(), float(layer.weight.sum()).hex())
"""
TUNED = """
import torch
import torch.cuda.tunable as tunable

tunable.enable()
tunable.tuning_enable(False)
torch.ones(2, device="cuda")
with open("tuned.csv", "w") as file:
    file.writelines(f"Validator,{name},{value}\\n" for name, value in tunable.get_validators())
    file.write("GemmTunableOp_float_NT,nt_64_64_64,Gemm_CublasLt_3,0.033\\n")
assert tunable.read_file("tuned.csv")
"""


def facts_of(folder, source, *arguments, options=()):
    """Record a script; return what the record has of torch, and what the script wrote."""
    (folder / "train.py").write_text(source)
    words = ("-m", "samebits", "run", "--force", "--record", "a.sbr", *options, "train.py", *arguments)
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with RecordReader(folder / "a.sbr") as reader:
        return json.loads(json.dumps(reader.info.environment["torch"])), done.stdout


@pytest.mark.parametrize(
    ("arguments", "op"),
    [
        (("bfloat16",), "_scaled_dot_product_cudnn_attention"),
        (("bfloat16", "deterministic"), "_scaled_dot_product_flash_attention"),
        (("float32",), "_scaled_dot_product_efficient_attention"),
        (("bfloat16", "checkpoint"), "_scaled_dot_product_cudnn_attention"),
    ],
)
def test_the_op_of_attention_that_torch_chose_is_a_fact(tmp_path, arguments, op):
    assert facts_of(tmp_path, ATTENTION, *arguments)[0]["attention"] == [op]


@pytest.mark.parametrize(("level", "uncompiled"), [("step", "0"), ("op", "1")])
def test_flex_attention_trains_at_step_and_at_op_level(tmp_path, level, uncompiled):
    """The compiler of torch traces it even where the script does not compile it; op level has no compiler."""
    facts, bits = facts_of(tmp_path, FLEX, options=("--level", level))
    assert facts["attention"] == ["flex_attention"]
    environment = {**os.environ, "TORCHDYNAMO_DISABLE": uncompiled}
    words = (sys.executable, "train.py")
    bare = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=environment, check=True)
    assert bits == bare.stdout


def test_results_of_tunable_op_are_facts(tmp_path):
    assert facts_of(tmp_path, TUNED)[0]["gemms"] == {"GemmTunableOp_float_NT nt_64_64_64": "Gemm_CublasLt_3"}
    assert facts_of(tmp_path, "import torch\ntorch.ones(2, device='cuda')")[0]["gemms"] == {}
