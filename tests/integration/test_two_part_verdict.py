"""The verdict over the state, and over what is only reported, of real scripts."""

from __future__ import annotations

import json

from cli_support import samebits, write

PRINTED = """
    import time
    import torch
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(6, 4)
    noise = torch.Generator()
    noise.seed()
    for step in range(4):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        sample = torch.randn(1, generator=noise)
        print(f"sample {sample.item():.3f}")
        WHAT
    torch.save(model.state_dict(), "model.pt")
"""


def test_a_printed_sample_leaves_the_training_identical(tmp_path):
    write(tmp_path, "train.py", PRINTED, WHAT="")
    result = samebits("verify", "--json", "--state-only", "train.py", cwd=tmp_path)
    found = json.loads(result.stdout)
    assert result.returncode == 0
    assert (found["verdict"], found["state"], found["steps"]) == ("different", "identical", 4)
    assert [read["site"]["line"] for read in found["reported"]] == [14]
    shown = samebits("verify", "--no-localise", "train.py", cwd=tmp_path)
    assert shown.returncode == 1
    assert "the training is identical at every step; 1 reported value differs" in shown.stdout
    assert 'print(f"sample {sample.item():.3f}")' in shown.stdout


def test_a_value_that_decides_something_reaches_the_state(tmp_path):
    what = "optimizer.param_groups[0]['lr'] = 0.1 + 0.001 * sample.item()"
    write(tmp_path, "train.py", PRINTED, WHAT=what)
    result = samebits("verify", "--json", "--no-localise", "--state-only", "train.py", cwd=tmp_path)
    found = json.loads(result.stdout)
    assert (result.returncode, found["verdict"], found["state"], found["reported"]) == (
        1,
        "different",
        "different",
        [],
    )
    assert found["reason"].startswith("the state differs at step 1")


def test_what_is_saved_is_state(tmp_path):
    write(tmp_path, "train.py", PRINTED, WHAT="torch.save(sample, 'sample.pt')")
    result = samebits("verify", "--json", "--no-localise", "--state-only", "train.py", cwd=tmp_path)
    assert (result.returncode, json.loads(result.stdout)["state"]) == (1, "different")
