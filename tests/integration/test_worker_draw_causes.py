"""What workers of DataLoaders draw explains a difference, without any trial."""

from __future__ import annotations

from cli_support import judged, samebits, write

SCRIPT = """
    import numpy as np
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Noisy(Dataset):
        rng = None

        def __len__(self):
            return 8

        def __getitem__(self, index):
            self.rng = self.rng or MAKE
            return torch.tensor([float(index), self.rng.normal()])

    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    BEFORE
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in DataLoader(Noisy(), batch_size=4, num_workers=2):
        optimizer.zero_grad()
        model(batch.float()).mean().backward()
        optimizer.step()
"""


def first_finding(folder, **words):
    """What `verify` says first of the script with these words in it."""
    write(folder, "train.py", SCRIPT, **words)
    return judged(samebits("verify", "--json", "--no-interventions", "train.py", cwd=folder))["findings"][0]


def test_a_generator_made_in_a_worker_is_named_without_any_trial(tmp_path):
    found = first_finding(tmp_path, MAKE="np.random.default_rng()", BEFORE="")
    assert (found["cause"], found["site"]["line"]) == ("unseeded-numpy", 12)
    assert found["remedy"]["text"].startswith("seed it from torch in the worker")


def test_workers_of_a_loader_on_an_unseeded_generator_are_laid_to_torch(tmp_path):
    found = first_finding(tmp_path, MAKE="np.random", BEFORE="torch.seed()")
    assert found["cause"] == "unseeded-torch"
