"""`torch.compile` under recording: its caches are no data, its helpers no children, its code is a fact."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")

SCRIPT = """
import sys
import torch

torch.manual_seed(0)
if sys.argv[1:]:
    import torch._inductor.config
    torch._inductor.config.cpp.simdlen = 1
model = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
compiled = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    compiled(torch.randn(32, 64)).square().mean().backward()
    optimizer.step()
"""


@pytest.fixture
def samebits(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)

    def run(*words, cache="cache"):
        return subprocess.run(
            [sys.executable, "-m", "samebits", *words], cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / cache)}, check=False,
        )  # fmt: skip

    return run


def test_the_code_is_the_same_from_a_cache_or_another_folder_and_differs_with_a_setting(samebits):
    for name, words, cache in (("a", (), "one"), ("b", (), "one"), ("c", (), "two"), ("d", ("x",), "one")):
        made = samebits("run", "--record", f"{name}.sbr", "train.py", *words, cache=cache)
        assert made.returncode == 0, made.stderr
    same = samebits("diff", "a.sbr", "b.sbr", "--json")
    assert json.loads(same.stdout)["differences"] == []
    assert json.loads(samebits("diff", "a.sbr", "c.sbr", "--json").stdout)["differences"] == []
    told = " ".join(samebits("diff", "a.sbr", "d.sbr").stdout.split())
    assert "switch inductor-cpp-simdlen: none and 1 can change: compiled code" in told
    assert "with it: code that torch.compile generated for graph 1 (forward)" in told
    assert "data file" not in told
    assert "code of " not in told


def test_the_first_run_of_verify_fills_the_cache_and_that_is_nobody_elses_matter(samebits):
    result = json.loads(samebits("verify", "--json", "train.py").stdout)
    assert result["verdict"] == "identical"
    assert len(result["notes"]) == 1, result["notes"]
    assert result["notes"][0].startswith("torch.compile made 1 graph(s)")
