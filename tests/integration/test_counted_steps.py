"""Steps are the iterations that a user would count."""

from __future__ import annotations

import json

from cli_support import samebits, write

CACHED = """
    import json, os
    import torch
    rows = torch.arange(19.0)
    if not os.path.exists("cache.json"):
        json.dump([row.item() for row in rows], open("cache.json", "w"))
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(15):
        optimizer.zero_grad()
        model(torch.ones(6, 4)).square().mean().backward()
        optimizer.step()
"""

READS = """
    import torch
    torch.manual_seed(0)
    values = torch.zeros(1)
    for number in range(30):
        if number == 12:
            torch.seed()
            values = values + torch.rand(1)  # the culprit
        print(values.item())
"""


def test_values_that_are_read_before_training_are_no_steps(tmp_path):
    """Run 1 makes a cache; run 2 finds it."""
    write(tmp_path, "train.py", CACHED)
    found = json.loads(samebits("verify", "--json", "--no-interventions", "train.py", cwd=tmp_path).stdout)
    assert found["verdict"] == "different"
    assert found["reason"].startswith("the state differs at step 0: ")
    assert found["findings"][0]["step"] == 0
    assert found["findings"][0]["site"]["line"] == 6


def test_steps_that_are_asked_for_are_those_of_the_training(tmp_path):
    seeded = CACHED.replace("import torch\n", "import torch\n    torch.manual_seed(0)\n")
    write(tmp_path, "train.py", seeded)
    found = json.loads(samebits("verify", "--json", "--steps", 3, "train.py", cwd=tmp_path).stdout)
    assert (found["verdict"], found["steps"]) == ("identical", 3)


def test_in_a_script_that_does_not_train_each_value_counts(tmp_path):
    write(tmp_path, "infer.py", READS)
    found = json.loads(samebits("verify", "--json", "--no-interventions", "infer.py", cwd=tmp_path).stdout)
    assert (found["verdict"], found["state"], found["steps"]) == ("different", "different", 30)
    assert found["reason"].startswith("a value that was read differs at step 12 ")
    assert (found["findings"][0]["step"], found["findings"][0]["site"]["line"]) == (12, 6)
