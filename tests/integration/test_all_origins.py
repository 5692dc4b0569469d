"""`samebits verify` lists every source of a difference, also those behind the first."""

from __future__ import annotations

import pytest
from cli_support import judged, samebits, write

START = """
    import os, random
    import numpy as np
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.randn(6, 4)
"""
ONE = """
    for step in range(3):
        optimizer.zero_grad()
        hidden = model[0](x + torch.tensor(np.random.normal(0, 0.1, (6, 4)), dtype=torch.float32))  # here
        print(hidden.mean().item())
        loss = model[2](model[1](hidden)).square().mean()
        print(loss.item())
        loss.backward()
        optimizer.step()
"""
TWO = """
    for step in range(3):
        optimizer.zero_grad()
        hidden = model[0](x + torch.tensor(np.random.normal(0, 0.1, (6, 4)), dtype=torch.float32))  # here
        print(hidden.mean().item())
        mask = torch.tensor([byte & 1 for byte in os.urandom(8)])  # here
        loss = model[2](model[1](hidden) * mask).square().mean()
        print(loss.item())
        loss.backward()
        optimizer.step()
"""
THREE = """
    for step in range(3):
        optimizer.zero_grad()
        noisy = x + torch.from_numpy(np.random.normal(0, 0.1, (6, 4)))  # here
        hidden = model[0](noisy.float())
        print(hidden.mean().item())
        mask = torch.tensor([byte & 1 for byte in os.urandom(8)])  # here
        loss = model[2](model[1](hidden) * mask).square().mean()
        print(loss.item())
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * random.random()  # here
        optimizer.step()
"""
SEEDED_TWICE = """
    torch.seed()  # here
    for step in range(3):
        optimizer.zero_grad()
        hidden = model[0](x + torch.randn(6, 4))
        print(hidden.mean().item())
        factor = random.random()  # here
        loss = model[2](model[1](hidden) * factor).square().mean()
        print(loss.item())
        loss.backward()
        optimizer.step()
"""


def verify(tmp_path, body):
    """The judgement, and the numbers of the lines marked `# here`."""
    path = write(tmp_path, "train.py", START + body)
    marked = [n for n, line in enumerate(path.read_text().splitlines(), 1) if "# here" in line]
    result = samebits("verify", "--no-interventions", "--json", "--keep", "records", "train.py", cwd=tmp_path)
    return judged(result), marked


def lines(result) -> list[int]:
    """Where the findings are."""
    return [finding["site"]["line"] for finding in result["findings"]]


@pytest.mark.parametrize(
    ("body", "causes"),
    [
        (ONE, ["unseeded-numpy"]),
        (TWO, ["unseeded-numpy", "os-entropy"]),
        (THREE, ["unseeded-numpy", "os-entropy", "unseeded-python"]),
        (SEEDED_TWICE, ["unseeded-torch", "unseeded-python"]),
    ],
    ids=["one", "two", "three", "a seeding and a factor"],
)
def test_every_source_is_listed_and_no_other(tmp_path, body, causes):
    """Also those that only show once the first was replaced; each with its cause and by how much."""
    result, marked = verify(tmp_path, body)

    assert lines(result) == marked
    assert [finding["cause"] for finding in result["findings"]] == causes
    assert all(finding["difference"]["elements"] for finding in result["findings"])
    later = result["findings"][1:]
    assert all(any("seen once run 1's value" in line for line in found["evidence"]) for found in later)
    assert not any("could not" in note or "entered at" in note for note in result["notes"])
    runs = {path.stem for path in (tmp_path / "records").glob("*.sbr")}
    given = {f"values-{n}b" for n in range(1, len(causes) + 1)}
    assert runs == {"run-1", "run-2", "op-1a", "op-1b"} | given
