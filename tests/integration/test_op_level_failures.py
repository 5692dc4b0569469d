"""Scripts that fail when every operation is recorded: the verdict stands without it."""

from __future__ import annotations

import json

import pytest
from cli_support import samebits, write

SCRIPT = """
    import torch
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    class Tagged(torch.Tensor):
        pass

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        x = torch.randn(3, 4)
        if step == 1:
            torch.seed()
            x = torch.randn(3, 4)
        FAILING
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
"""
FAILING = {
    # torch 2.13.0 refuses these while a dispatch mode is on
    "legacy constructor of a subclass": "x = Tagged(x)",
    "tracing a module": "torch.jit.trace(model, x)(x)",
    "exit": "if _get_current_dispatch_mode() is not None: raise SystemExit('no modes')",
    "crash": "import os; _get_current_dispatch_mode() is None or os.abort()",
}


@pytest.mark.parametrize("name", FAILING)
def test_the_step_level_answer_stands_where_operations_cannot_be_recorded(tmp_path, name):
    """The verdict is that of the runs that were compared; a note says why no operation is named."""
    path = write(tmp_path, "train.py", SCRIPT, FAILING=FAILING[name])
    result = samebits("verify", "--no-interventions", "--json", path, cwd=tmp_path)
    answer = json.loads(result.stdout)
    assert (result.returncode, answer["verdict"]) == (1, "different"), result.stderr
    assert answer["findings"][0]["step"] == 1
    assert "failed when every operation was recorded" in " ".join(answer["notes"])


@pytest.mark.parametrize("name", ["tracing a module", "crash"])
def test_where_no_run_can_be_recorded_by_operation_the_way_out_is_named(tmp_path, name):
    """Steps can be compared all the same."""
    path = write(tmp_path, "train.py", SCRIPT, FAILING=FAILING[name])
    result = samebits("verify", "--no-interventions", "--json", "--level", "op", path, cwd=tmp_path)
    answer = json.loads(result.stdout)
    assert (result.returncode, answer["verdict"]) == (2, "not_judged"), result.stderr
    assert "leave out `--level op` to compare its steps" in answer["reason"]
