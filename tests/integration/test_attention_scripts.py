"""Attention in scripts: the op that torch chose is a fact, and `flex_attention` runs in every way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from samebits.records.reader import RecordReader

CHOOSES = """
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
layer = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
kernel = open("kernel").read()

for _ in range(2):
    h = layer(torch.randn(1, 2, 32, 16))
    optimizer.zero_grad()
    with sdpa_kernel(getattr(SDPBackend, kernel)):
        y = torch.nn.functional.scaled_dot_product_attention(h, h, h)
    y.square().mean().backward()
    optimizer.step()
"""
FLEX = """
import hashlib
import sys
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

torch.manual_seed(0)
attend = torch.compile(flex_attention) if "compiled" in sys.argv else flex_attention
bias = torch.randn(150)
layer = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 150, 150, device="cpu")

def relative(score, b, h, q, k):
    return torch.tanh(score) + bias[(q - k).abs()]

for _ in range(2):
    x = torch.randn(1, 2, 150, 16)
    with torch.no_grad():  # on the CPU it has no gradient
        y = attend(x, x, x, score_mod=relative, block_mask=mask)
    optimizer.zero_grad()
    layer(y).square().mean().backward()
    optimizer.step()
print(hashlib.sha256(y.numpy().tobytes() + layer.weight.detach().numpy().tobytes()).hexdigest())
"""
FLASH, MATH = "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_attention_math"


@pytest.fixture
def samebits(tmp_path):
    (tmp_path / "train.py").write_text(CHOOSES)
    (tmp_path / "flex.py").write_text(FLEX)

    def run(*words, **variables):
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), **variables}
        command = words[1:] if words[0] == "bare" else ("-m", "samebits", *words)
        return subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path, capture_output=True, text=True, env=environment, check=False,
        )  # fmt: skip

    return run


def recorded(path):
    with RecordReader(path) as reader:
        return reader.info.environment["torch"]["attention"]


def test_diff_names_the_ops_of_attention_that_torch_chose(samebits, tmp_path):
    for name, kernel in (("a", "FLASH_ATTENTION"), ("b", "MATH")):
        (tmp_path / "kernel").write_text(kernel)
        made = samebits("run", "--no-data", "--record", f"{name}.sbr", "train.py")
        assert made.returncode == 0, made.stderr
    told = " ".join(samebits("diff", "a.sbr", "b.sbr").stdout.split())
    differ = f"ops of attention: only the first has {FLASH}; only the second has {MATH}"
    assert f"{differ} can change: attention (documented)" in told
    assert "nothing that can change bits" in samebits("diff", "b.sbr").stdout
    assert f"only the first has {FLASH}" in " ".join(samebits("compare", "a.sbr", "b.sbr").stdout.split())


def test_flex_attention_gives_the_same_bits_recorded_by_op(samebits, tmp_path):
    """The mode of op level had no rule for higher-order ops: torch ended the script with an error."""
    bare = samebits("bare", "flex.py")
    for level in ("step", "op"):
        made = samebits("run", "--record", f"{level}.sbr", "--level", level, "flex.py")
        assert (made.returncode, made.stdout) == (0, bare.stdout), made.stderr
    with RecordReader(tmp_path / "op.sbr") as reader:
        sites = {(e.op, e.site.line) for e in reader.events() if e.op.startswith("aten::")}
    line = 1 + FLEX.splitlines().index("        y = attend(x, x, x, score_mod=relative, block_mask=mask)")
    body = 1 + FLEX.splitlines().index("    return torch.tanh(score) + bias[(q - k).abs()]")
    assert ("aten::matmul.default", line) in sites
    assert ("aten::tanh.default", body) in sites


def test_flex_attention_is_executed_again_by_replay(samebits):
    told = " ".join(samebits("verify", "--replay", "flex.py").stdout.split())
    assert "all gave the same bits" in told
    assert "did not finish" not in told


def test_flex_attention_is_portable_uncompiled_and_refused_compiled(samebits):
    """Uncompiled it consists of ops; their bits depend on neither threads nor instructions."""
    settings = ({}, {"OMP_NUM_THREADS": "1", "ATEN_CPU_CAPABILITY": "default"})
    plain = {samebits("bare", "flex.py", **each).stdout for each in settings}
    portable = {samebits("run", "--seed", "3", "--portable", "flex.py", **each).stdout for each in settings}
    assert len(plain) > 1
    assert len(portable) == 1
    assert portable != {""}
    refused = samebits("run", "--seed", "3", "--portable", "flex.py", "compiled")
    assert refused.returncode != 0
    assert "flex.py:8 compiles code" in refused.stderr


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
def test_compiled_flex_attention_is_a_fact_and_the_same_from_run_to_run(samebits, tmp_path):
    for name, cache in (("a", "one"), ("b", "two")):
        words = ("run", "--seed", "3", "--record", f"{name}.sbr", "flex.py", "compiled")
        samebits(*words, TORCHINDUCTOR_CACHE_DIR=cache)
        assert recorded(tmp_path / f"{name}.sbr") == ["flex_attention"]
    assert "nothing that can change bits" in samebits("diff", "a.sbr", "b.sbr").stdout
    assert samebits("compare", "a.sbr", "b.sbr").returncode == 0


LATE = """
import torch
torch.manual_seed(0)
def add(x, i, v):
    return x.index_put((i,), v, accumulate=True)
weight = torch.nn.Parameter(torch.zeros(10))
optimizer = torch.optim.SGD([weight], lr=0.1)
torch.use_deterministic_algorithms(EARLY)
torch.compile(add)(torch.zeros(10), torch.randint(0, 10, (50000,)), torch.randn(50000))
torch.use_deterministic_algorithms(True)
weight.sum().backward()
optimizer.step()
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
def test_compiled_code_that_deterministic_algorithms_did_not_reach_is_noted(samebits, tmp_path):
    for early in (True, False):
        (tmp_path / "late.py").write_text(LATE.replace("EARLY", str(early)))
        samebits("run", "--force", "--record", "a.sbr", "late.py")
        told = " ".join(samebits("show", "a.sbr").stdout.split())
        noted = "adds with atomic operations all the same, in an order that may differ from run to run: cpp_"
        assert (noted in told) is not early
