"""Calls that seed are recorded with their line, whatever torch has put around them."""

import pytest
from cli_support import samebits, write

from samebits.records.reader import RecordReader

SEEDS = """
    import torch
    torch.manual_seed(0)
    FIRST
    torch.manual_seed(5)
    torch.random.manual_seed(6)
"""


@pytest.mark.parametrize(
    "first",
    [
        "pass",
        "torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)",  # torch wraps `manual_seed` then
        "import torch._dynamo",
    ],
)
def test_seeds_after_torch_loads_its_compiler(tmp_path, first):
    write(tmp_path, "train.py", SEEDS, FIRST=first)
    done = samebits("run", "--record", "a.sbr", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr

    with RecordReader(tmp_path / "a.sbr") as reader:
        seeds = [(e.arguments, e.site.line) for e in reader.events(["rng"]) if e.op == "seed" and e.site]
    assert seeds == [(f"torch.manual_seed({seed})", line) for seed, line in ((0, 2), (5, 4), (6, 5))]
